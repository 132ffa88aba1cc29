from tiny import hit

for x in 0.5, 1.0:
    print(f"{x:.2f}")
hit("output-file-1")
