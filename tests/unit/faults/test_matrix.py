import pytest

from tests.faults.cases import CASES
from tests.faults.matrix import WHOLE, Part, cases_of, faults_of, part
from tests.faults.strikes import FAULTS

FRAGMENTS = {name: len(case.columns) for name, case in CASES.items()}
FEW_FAULTS = tuple("abcde")


@pytest.mark.parametrize("count", [1, 3, 7, 30])
def test_shares_are_a_partition_of_the_cases(count: int) -> None:
    """Also if there are more shares than cases."""
    shares = [cases_of(FRAGMENTS, Part(number, count)) for number in range(1, count + 1)]
    assert sorted(case for share in shares for case in share) == sorted(FRAGMENTS)


def test_shares_have_about_the_same_weight() -> None:
    """The heaviest case alone is a share; the others are balanced."""
    shares = [cases_of({"a": 9, "b": 3, "c": 3, "d": 2, "e": 1}, Part(n, 3)) for n in (1, 2, 3)]
    assert shares == [("a",), ("b", "d"), ("c", "e")]


@pytest.mark.parametrize("faults", [tuple(FAULTS), FEW_FAULTS])
@pytest.mark.parametrize("share", [Part(1, 7), Part(5, 7)])
def test_all_turns_are_all_faults_for_every_share(faults: tuple[str, ...], share: Part) -> None:
    """Every pair of a case and a fault occurs, and none twice."""
    struck = [faults_of(faults, Part(number, 4), share) for number in range(1, 5)]
    assert sorted(fault for turn in struck for fault in turn) == sorted(faults)


def test_a_turn_has_every_fault_once_over_as_many_shares() -> None:
    """So one run contains each of them."""
    struck = [faults_of(tuple(FAULTS), Part(3, 7), Part(number, 7)) for number in range(1, 8)]
    assert sorted(fault for faults in struck for fault in faults) == sorted(FAULTS)


def test_the_default_is_everything() -> None:
    """The default of a run by hand."""
    assert sorted(cases_of(FRAGMENTS, WHOLE)) == sorted(FRAGMENTS)
    assert faults_of(FEW_FAULTS, WHOLE, WHOLE) == FEW_FAULTS


def test_a_part_is_parsed() -> None:
    """Numbers begin with 1."""
    assert part("2/7") == Part(2, 7)
    for wrong in ("0/7", "8/7", "1", "1/0"):
        with pytest.raises(ValueError):  # noqa: PT011 - argparse reports it
            part(wrong)
