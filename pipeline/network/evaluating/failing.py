"""Errors of an expression for one row."""


class NoValueError(Exception):
    """The expression has no value for this row; the text says why."""


class RowFailedError(NoValueError):
    """The expression fails for this row, as in a box."""


class LeftToSparkError(NoValueError):
    """The value of this row is a rare one that only Spark computes."""

    def __init__(self, what: str) -> None:
        super().__init__(f"only a box computes this: {what}")
