"""A file, shown whole."""

import math

from tiny import hit

assert math.sqrt(9) == 3
hit("file-1")
