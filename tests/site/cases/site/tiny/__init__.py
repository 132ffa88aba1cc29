"""A package small enough to be read with the pages that use it."""

import os

HITS = os.environ.get("HITS")


def hit(name):
    """Record that a published block got as far as this call."""
    if HITS:
        with open(HITS, "a", encoding="utf-8") as file:
            file.write(f"{name}\n")
