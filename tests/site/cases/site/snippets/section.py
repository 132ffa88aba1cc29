hidden = 1
# --8<-- [start:outer]
from tiny import hit

x = 1
# --8<-- [start:inner]
y = x + 2
# --8<-- [end:inner]
assert y == 3
hit("section-1")
# --8<-- [end:outer]
hidden = 2
