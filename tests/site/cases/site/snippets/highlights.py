from tiny import hit
x = 1
hit("highlights-1")
