"""Functions with examples."""


def half(x):
    """Half of x.

    Examples:
        >>> from tiny.api import half
        >>> half(3)
        1.5

        ```python
        from tiny import hit
        from tiny.api import half

        assert half(4) == 2
        hit("api-1")
        ```
    """
    return x / 2


class Box:
    """A box."""

    def __init__(self, size):
        self.size = size

    def double(self):
        r"""Twice as large.

        Examples:
            ```py title="box.py" hl_lines="3"
            from tiny import hit
            from tiny.api import Box
            assert Box(2).size == 2
            assert Box(2).double().size == 4
            hit("api-2")
            ```
        """
        return Box(2 * self.size)
