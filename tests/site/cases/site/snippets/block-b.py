y = 0
# --8<-- [start:tail]
assert x == 1
# --8<-- [end:tail]
