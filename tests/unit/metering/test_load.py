"""Load units, the speed of a core, and what was used in a span of time."""

from pipeline.ids import SteadyMillis
from pipeline.metering.accounting import Account, Charge
from pipeline.metering.load import REFERENCE_NS, CoreSpeed, Use, usage
from pipeline.metering.readings import Flow, LaneUse, ProcessTimes, Reading
from tests.unit.metering.test_accounting import A, B


def test_a_unit_is_ten_milliseconds_of_a_reference_core() -> None:
    """Half the time on a core that is twice as fast; rounded down to a thousandth."""
    assert CoreSpeed(1_000).milli(10_000_000) == 1_000
    assert CoreSpeed(2_000).milli(5_000_000) == 1_000
    assert CoreSpeed(1_000).milli(19_999) == 1


def test_a_core_in_full_use_has_a_load_of_a_hundred() -> None:
    """In each second, whatever the span."""
    assert CoreSpeed(1_000).milli_per_s(3_000_000_000, 3_000) == 100_000
    assert CoreSpeed(1_500).milli_per_s(3_000_000_000, 3_000) == 150_000
    assert CoreSpeed(1_000).milli_per_s(1, 0) == 0


def test_the_least_disturbed_round_of_the_calibration_counts() -> None:
    """Half the time of the reference core: twice its speed."""
    assert CoreSpeed.measured([REFERENCE_NS, REFERENCE_NS // 2, 9 * REFERENCE_NS]) == CoreSpeed(
        2000
    )
    assert CoreSpeed.measured([0]).permille > 0


def test_usage_is_the_difference_of_two_accounts() -> None:
    """Of those that have used something meanwhile, also of one that came later."""
    still = LaneUse(0, 10, 0, flow=Flow(5, 5, 50, 50))
    first = Account(Reading(SteadyMillis(0), ProcessTimes(0, 0, 0, 0, 0), {A: still}))
    later = {A: still, B: LaneUse(4, 6, 2, flow=Flow(2, 1, 20, 9))}
    second = first.after(Reading(SteadyMillis(10), ProcessTimes(7, 0, 10, 0, 0), later))
    found = usage(first, second)
    assert found.uses == {B: Use(Charge(4, 6, 2), Flow(2, 1, 20, 9))}
    assert (found.span_ms, found.overhead_ns, found.total_ns) == (10, 5, 17)
