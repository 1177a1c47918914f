"""Why an expression has no value for one row."""


class NoValueError(Exception):
    """The expression has no value for this row; the text says why."""


class RowFailedError(NoValueError):
    """The expression fails for this row, as it does in a box."""


class LeftToSparkError(NoValueError):
    """The value of this row is one of the rare ones that only Spark computes."""

    def __init__(self, what: str) -> None:
        super().__init__(f"only a box computes this: {what}")
