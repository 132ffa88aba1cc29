from tiny import hit
x = 1
hit("deep-1")
