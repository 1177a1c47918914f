"""Values of expressions."""

from decimal import Decimal
from typing import TypeAlias

Value: TypeAlias = (
    bool | int | float | str | bytes | Decimal | list["Value"] | dict[str, "Value"] | None
)
"""A time is microseconds, a date days since 1970; a struct is a dict by its fields."""
