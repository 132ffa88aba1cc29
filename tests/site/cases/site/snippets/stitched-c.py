    # one more
    total += i
