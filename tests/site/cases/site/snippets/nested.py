hidden = 1
# --8<-- [start:part]
y = x + 1
# --8<-- [end:part]
