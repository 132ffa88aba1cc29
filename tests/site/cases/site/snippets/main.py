"""A program."""

import os

from tiny import hit


def double(x):
    return 2 * x


"""Just a string."""
assert __doc__ == "A program.", __doc__
assert os.path.basename(__file__) == "main.py"

if __name__ == "__main__":
    assert double(4) == 8
    hit("main-1")
