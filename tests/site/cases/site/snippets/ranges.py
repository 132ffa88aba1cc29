from tiny import hit
x = 1
raise RuntimeError("between the ranges")

assert x == 1
hit("ranges-1")
from tiny import hit; assert 1 < 2
hit("ranges-2")
raise RuntimeError("after the ranges")