hidden = 1

from tiny import hit; x = 1
assert x == 1
hit("range-1")
raise RuntimeError("outside the range")
