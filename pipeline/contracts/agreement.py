"""What two parties agree on: a contract, and how its load is settled. Facts only, checked."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from pipeline.contracts.money import check_decimal
from pipeline.contracts.terms import Contract
from pipeline.errors import InputError

PERIOD_MIN_MS: Final = 10_000
PERIOD_MAX_MS: Final = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class SettlementTerms:
    """How load is settled.

    Args:
        period_ms: length of a settlement period; periods begin at its multiples since 1970, UTC.
        tolerance: share by which the counts of the buyer may lie below those of the seller
            without consequences: from 0 to below 1.

    Raises:
        InputError: a period that is too short or too long, or another tolerance.
    """

    period_ms: int = 3_600_000
    tolerance: Decimal = Decimal("0.01")

    def __post_init__(self) -> None:
        check_decimal(self.tolerance, "tolerance", "settlement")
        if self.tolerance >= 1:
            raise InputError(
                f"the tolerance is {self.tolerance}", place="settlement", hint="it is below 1."
            )
        if not PERIOD_MIN_MS <= self.period_ms <= PERIOD_MAX_MS:
            raise InputError(
                f"the period is {self.period_ms} ms",
                place="settlement",
                hint="it has 10 s at least, and a day at most.",
            )


@dataclass(frozen=True, slots=True)
class Agreement:
    """A contract with its settlement: what both parties sign."""

    contract: Contract
    settlement: SettlementTerms = field(default_factory=SettlementTerms)
