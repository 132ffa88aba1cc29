from tiny import hit
x = 3
hit("lists-3")
