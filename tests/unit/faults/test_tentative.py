"""The checker of tentative topics finds each fault in a good history."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from brokers.records import KafkaRecord
from pipeline.ids import Millis, Offset, TopicName
from pipeline.lanes.result_headers import RESULT_ID, WRITTEN_TO
from pipeline.tentative.records import TentativeRecord
from tests.faults.history import Kind
from tests.faults.tentative import Tentative, check_tentative, count_results
from tests.unit.tentative.made import TOPIC_ID, as_read, mark, result, undo

GOOD: tuple[TentativeRecord, ...] = (
    result("a", 10),
    result("b", 10),
    result("c", 20, partition=1),
    result("a", 10, "again", of="2.1"),
    undo("b", 10),
    mark(20),
    mark(20, partition=1),
    mark(30, of="2.1"),
    mark(30, of="2.1", partition=1),
)
"""Two generations: `a` is superseded and then stable, `b` undone, `c` stable."""


def stable(*names: str) -> tuple[KafkaRecord, ...]:
    """Results of the output."""
    headers = (WRITTEN_TO, TOPIC_ID.encode())
    return tuple(
        KafkaRecord(
            *(TopicName("speeds"), 0, Offset(offset), Millis(10), b"k", b"v"),
            headers=(headers, (RESULT_ID, name.encode())),
        )
        for offset, name in enumerate(names)
    )


def tentative(
    records: Sequence[TentativeRecord] = GOOD, names: Sequence[str] = "ac", promised: int = 30
) -> Tentative:
    """The topics after a run."""
    read = [as_read(record, offset) for offset, record in enumerate(records)]
    return Tentative(read, {0, 1}, stable(*names), Millis(promised))


def kinds(found: Tentative) -> set[Kind]:
    """What is found."""
    return {one.kind for one in check_tentative(found)}


def test_a_good_history_has_no_findings() -> None:
    """Nor has one without tentative results."""
    assert kinds(tentative()) == set()
    assert kinds(tentative(())) == set()
    assert count_results(tentative().records) == 4


def test_a_result_that_is_neither_stable_nor_undone_is_found() -> None:
    """As far as the stable output is complete."""
    assert kinds(tentative(names="a")) == {Kind.UNSETTLED}
    assert kinds(tentative(names="a", promised=19)) == set()


def test_a_result_that_is_stable_and_undone_is_found() -> None:
    """The undo was wrong."""
    assert kinds(tentative(names="abc")) == {Kind.SETTLED_TWICE}


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (undo("b", 10), Kind.SETTLED_TWICE),
        (result("b", 10), Kind.SETTLED_TWICE),
        (result("d", 10), Kind.UNSETTLED),
    ],
)
def test_a_record_too_many_is_found(record: TentativeRecord, kind: Kind) -> None:
    """A second undo; a result behind its undo; one that nobody settles."""
    assert kind in kinds(tentative((*GOOD[:5], record, *GOOD[5:])))


def test_a_record_behind_its_done_mark_is_found() -> None:
    """The mark comes last."""
    moved = (*GOOD[:4], GOOD[5], GOOD[4], *GOOD[6:])
    assert kinds(tentative(moved)) == {Kind.DONE}


@pytest.mark.parametrize("lost", range(5, 9))
def test_a_lost_done_mark_is_found(lost: int) -> None:
    """In each partition there has to be one."""
    assert kinds(tentative((*GOOD[:lost], *GOOD[lost + 1 :]))) == {Kind.DONE}


def test_a_done_mark_that_promises_too_little_is_found() -> None:
    """A reader would take the generation for done before all of its results are settled."""
    assert kinds(tentative((*GOOD[:5], mark(19), *GOOD[6:]))) == {Kind.DONE}


def test_a_record_that_nobody_reads_is_found() -> None:
    """Of another life of the output, or damaged."""
    good = tentative()
    foreign = replace(good.records[0], offset=Offset(99), headers=())
    assert kinds(replace(good, records=(*good.records, foreign))) == {Kind.UNSETTLED}


def test_a_reader_that_is_left_with_results_is_found() -> None:
    """Whichever topic it reads first."""
    found = [str(one) for one in check_tentative(tentative((result("e", 40),), "a", 40))]
    assert any("neither stable nor undone" in one for one in found)
    assert not any("is left with" in one for one in found), "the boundary undoes it for readers"
