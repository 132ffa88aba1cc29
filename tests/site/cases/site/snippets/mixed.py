# --8<-- [start:first]
total += 1  # first
# --8<-- [end:first]

# --8<-- [start:second]
total += 1  # second
# --8<-- [end:second]
total += 1  # third
