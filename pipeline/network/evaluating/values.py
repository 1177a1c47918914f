"""Values as expressions compute with them."""

from decimal import Decimal
from typing import TypeAlias

Value: TypeAlias = (
    bool | int | float | str | bytes | Decimal | list["Value"] | dict[str, "Value"] | None
)
"""A time is microseconds since 1970, a day is days since then; a struct is a dict by its fields."""
