"""Numbers in sentences."""


def counted(number: int, what: str) -> str:
    """A number with what it counts, in the singular for one.

    >>> counted(1, "topic"), counted(2_000, "topic")
    ('1 topic', '2,000 topics')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
