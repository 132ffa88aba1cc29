from tiny import hit
x = 1
