"""Kinds of boxes on Spark itself, without servers, over records that are cut into batches anywhere.

Records come out of order, some at equal times, some late, in several partitions; what comes out
has to be what the sequential reference makes of them. A Java process of its own runs all cases,
since other tests leave one behind that lacks our jars. Every case can be run so, and a fragment
takes it ten seconds or more: here are those that `make test` does not run otherwise.
"""

import pytest

from tests.system.faults.programs import lines_of

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

WITHIN_S = 500.0
OF_ROWS = ("flat_map", "route", "union")
OF_TIME = ("sliding", "sessions", "top", "deduplicate", "left_join")


def test_results_in_memory_are_those_of_the_reference() -> None:
    """Something is expected of each, and all of it comes; where there is state, some comes late."""
    cases = ("--cases", *OF_ROWS, *OF_TIME)
    lines = lines_of("tests.faults.memory", *cases, within_s=WITHIN_S)
    told = dict(line.split(": ", 1) for line in lines)
    assert [*told] == [*OF_ROWS, *OF_TIME]
    assert [case for case in OF_TIME if "(0 late)" in told[case]] == [], lines
