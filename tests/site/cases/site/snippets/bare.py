from tiny import hit
hit("bare-embed-1")
