# --8<-- [start:same]
from tiny import hit
x = 1
hit("twice-1")
# --8<-- [end:same]
