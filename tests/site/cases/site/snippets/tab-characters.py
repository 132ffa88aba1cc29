from tiny import hit
def f():
	return 1
assert f() == 1
hit("tab-2")
