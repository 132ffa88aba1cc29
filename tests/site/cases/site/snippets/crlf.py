from tiny import hit
y = 2
assert y == 2
hit("crlf-2")
