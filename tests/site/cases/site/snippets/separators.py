from tiny import hit
# one  two   three
z = 1
hit("separators-2")
