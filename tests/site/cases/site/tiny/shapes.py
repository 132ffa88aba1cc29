"""Areas. The function below is shown on its own; the other one is not."""


def hidden():
    """Not on any page.

    Examples:
        ```python
        raise RuntimeError("not published")
        ```
    """


def area(width, height):
    """The area of a rectangle.

    Examples:
        ```python hl_lines="2"
        from tiny import hit
        from tiny.shapes import area
        assert area(3, 4) == 12
        hit("api-name-2")
        ```
    """
    return width * height
