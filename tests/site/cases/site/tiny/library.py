"""A library."""


def mean(values):
    """Return the mean."""
    total = sum(values)
    return total / len(values)
