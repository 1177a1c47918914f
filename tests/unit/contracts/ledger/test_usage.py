"""The rule that settles differences between the two meters."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts.ledger.usage import Count, Period, Settled, Usage, settle
from pipeline.contracts.money import LoadUnits
from pipeline.contracts.terms import TaskId
from pipeline.errors import InputError
from pipeline.ids import Millis

TOLERANCE = Decimal("0.02")
COUNTS = st.builds(Count, st.integers(0, 10**12), st.integers(0, 10**15))
UNITS = st.decimals(0, 10**9, places=6, allow_nan=False).map(LoadUnits)


def usage(units: str, records: int = 1_000, size: int = 10_000) -> Usage:
    """What the seller metered."""
    return Usage(
        TaskId("tolls.scan"), Decimal("0.004"), LoadUnits(Decimal(units)), Count(records, size)
    )


def settled(paid: str, disputed: str = "0") -> Settled:
    """The outcome of the rule."""
    return Settled(LoadUnits(Decimal(paid)), LoadUnits(Decimal(disputed)))


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        (Count(1_000, 10_000), settled("12")),
        (Count(980, 10_000), settled("12")),  # at the tolerance
        (Count(979, 10_000), settled("11.748", "0.252")),
        (Count(1_000, 5_000), settled("6", "6")),
        (Count(250, 5_000), settled("3", "9")),  # the lower ratio
        (Count(5_000, 50_000), settled("12")),  # the seller asks for less
        (Count(0, 0), settled("0", "12")),  # the buyer knows nothing of it
    ],
)
def test_load_is_paid_in_proportion_to_the_lower_count(counted: Count, expected: Settled) -> None:
    """Beyond the tolerance; the rest is disputed."""
    assert settle(usage("12"), counted, TOLERANCE) == expected


def test_load_without_records_is_paid() -> None:
    """A task that waits for input needs memory and planning, too; both count nothing."""
    assert settle(usage("1.5", 0, 0), Count(0, 0), TOLERANCE) == settled("1.5")


@given(UNITS, COUNTS, COUNTS, st.decimals(0, "0.99", places=4))
def test_paid_and_disputed_load_are_the_metered_load(
    units: LoadUnits, by_seller: Count, by_buyer: Count, tolerance: Decimal
) -> None:
    """Exactly, and neither is negative; counts of the buyer that rise never lower the pay."""
    one = Usage(TaskId("t"), Decimal(1), units, by_seller)
    found = settle(one, by_buyer, tolerance)
    assert found.paid + found.disputed == units
    assert min(found.paid, found.disputed) >= 0
    more = Count(by_buyer.records + 1, by_buyer.bytes + 1)
    assert settle(one, more, tolerance).paid >= found.paid


@pytest.mark.parametrize("units", ["NaN", "-1", "Infinity", "1e16"])
def test_load_that_is_no_amount_is_refused(units: str) -> None:
    """Negative, not a number, or too much."""
    with pytest.raises(InputError, match="load is"):
        usage(units)


def test_floats_and_negative_counts_are_refused() -> None:
    """A float has other digits than were written."""
    with pytest.raises(InputError, match=r"load is 1\.5"):
        Usage(TaskId("t"), Decimal(1), 1.5, Count(0, 0))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="records is -1"):
        Count(-1, 0)


def test_periods_begin_at_multiples_of_their_length() -> None:
    """So both parties cut time in the same way."""
    assert Period.containing(Millis(125), 60) == Period(Millis(120), Millis(180))
    assert Period.containing(Millis(120), 60) == Period(Millis(120), Millis(180))
