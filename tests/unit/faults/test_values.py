from collections import Counter
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from pipeline.ids import TopicName
from tests.faults.history import Expected, Kind, Place, Seen
from tests.faults.values import Columns, check_order, check_values, counts
from tests.unit.faults.support import OUT

COLUMNS = Columns(("sensor", "end", "n"), ("sensor", "end"))
SOURCE = Place(TopicName("net-in"), 3, 41)


@st.composite
def correct(draw: st.DrawFn, least: int = 1) -> tuple[list[Expected], list[Seen]]:
    """The expected records, and equal reads: partition by sensor, windows in order."""
    rows = draw(
        st.lists(
            st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 3)),
            min_size=least,
            max_size=20,
        )
    )
    expected = [Expected(row, row[1], (SOURCE,), ((row[0],), row[1])) for row in rows]
    seen, offsets = [], {"a": 0, "b": 0, "c": 0}
    for row in sorted(rows, key=lambda row: row[1]):
        place = Place(OUT, "abc".index(row[0]), offsets[row[0]])
        offsets[row[0]] += draw(st.integers(1, 2))
        seen.append(Seen(place, row, row[1]))
    return expected, draw(st.permutations(seen))


def check(expected: list[Expected], seen: list[Seen]) -> dict[Kind, int]:
    """All checks of values, as counts."""
    values = check_values(OUT, COLUMNS, expected, seen)
    return counts((*values, *check_order(COLUMNS, expected, seen)))


@given(correct())
def test_a_correct_history_has_no_findings(history: tuple[list[Expected], list[Seen]]) -> None:
    """For any partitioning of records and any order of reads."""
    assert check(*history) == {}


@given(correct(), st.integers(0, 19))
def test_a_lost_record_is_reported_with_its_sources(
    history: tuple[list[Expected], list[Seen]], which: int
) -> None:
    """It has no place, so the places that it was computed from are named."""
    expected, seen = history
    gone = seen.pop(which % len(seen))
    (finding,) = check_values(OUT, COLUMNS, expected, seen)
    assert finding.kind is Kind.LOST
    assert f"n={gone.row[2]}" in finding.message
    assert "topic net-out; it follows from topic net-in, partition 3, offset 41" in finding.message


@given(correct(), st.integers(0, 19))
def test_a_duplicate_record_is_reported_with_its_place(
    history: tuple[list[Expected], list[Seen]], which: int
) -> None:
    """One more than expected, in any partition."""
    expected, seen = history
    again = seen[which % len(seen)]
    place = Place(OUT, again.place.partition, 999)
    (finding,) = check_values(OUT, COLUMNS, expected, [*seen, replace(again, place=place)])
    assert finding.kind is Kind.DUPLICATED
    assert f"topic net-out, partition {place.partition}, offset 999 came before" in finding.message


@given(correct(), st.integers(0, 19))
def test_a_record_with_another_value_is_reported_as_different(
    history: tuple[list[Expected], list[Seen]], which: int
) -> None:
    """It is paired with the missing one, so it counts once."""
    expected, seen = history
    place = which % len(seen)
    wrong = seen[place]
    seen[place] = replace(wrong, row=(*wrong.row[:2], 77))
    (finding,) = check_values(OUT, COLUMNS, expected, seen)
    assert finding.kind is Kind.DIFFERENT
    assert f"n=77) at {wrong.event_ms} at {wrong.place} instead of" in finding.message


@given(correct(), st.integers(0, 19))
def test_a_record_with_another_event_time_is_different(
    history: tuple[list[Expected], list[Seen]], which: int
) -> None:
    """The Kafka timestamp is compared, too."""
    expected, seen = history
    place = which % len(seen)
    seen[place] = replace(seen[place], event_ms=seen[place].event_ms + 1000)
    assert counts(check_values(OUT, COLUMNS, expected, seen)) == {Kind.DIFFERENT: 1}


@given(correct())
def test_a_record_without_a_source_is_reported(
    history: tuple[list[Expected], list[Seen]],
) -> None:
    """No expected record has its identity."""
    expected, seen = history
    stray = Seen(Place(OUT, 2, 555), ("z", 1, 1), 1)
    (finding,) = check_values(OUT, COLUMNS, expected, [*seen, stray])
    assert finding.kind is Kind.UNEXPECTED
    assert "topic net-out, partition 2, offset 555 follows from nothing" in finding.message


@given(correct(least=6), st.integers(0, 99))
def test_two_records_in_the_wrong_order_are_reported(
    history: tuple[list[Expected], list[Seen]], which: int
) -> None:
    """Only where they have an order: of one sensor, with different ends."""
    expected, seen = history
    pairs = [
        (first, second)
        for first in seen
        for second in seen
        if first.row[0] == second.row[0] and first.event_ms < second.event_ms
    ]
    assume(pairs)
    first, second = pairs[which % len(pairs)]
    swapped = [record for record in seen if record not in (first, second)]
    swapped += [replace(first, place=second.place), replace(second, place=first.place)]
    found = check_order(COLUMNS, expected, swapped)
    assert {finding.kind for finding in found} == {Kind.REORDERED}
    assert any(str(second.place) in finding.message for finding in found)
    assert not check_values(OUT, COLUMNS, expected, swapped)


@given(correct(least=5), st.integers(0, 19))
def test_a_group_in_two_partitions_is_reported(
    history: tuple[list[Expected], list[Seen]], which: int
) -> None:
    """Its order could not be observed."""
    expected, seen = history
    place = which % len(seen)
    moved = seen[place]
    assume(sum(record.row[0] == moved.row[0] for record in seen) > 1)
    seen[place] = replace(moved, place=Place(OUT, 9, 0))
    found = check_order(COLUMNS, expected, seen)
    assert Kind.SCATTERED in {finding.kind for finding in found}
    assert any("topic net-out, partition 9, offset 0" in finding.message for finding in found)


def test_a_group_may_change_its_partition_when_its_topic_has_grown() -> None:
    """Once per growth, and in order there, too; a group that changes back is reported."""
    rows = [Expected(("a", end, 1), end, (), (("a",), end)) for end in range(6)]

    def placed(*partitions: int) -> list[Seen]:
        offsets = Counter[int]()
        found = []
        for row, partition in zip(rows, partitions, strict=True):
            place = Place(OUT, partition, offsets[partition])
            found.append(Seen(place, row.row, row.event_ms))
            offsets[partition] += 1
        return found

    moved, back = placed(1, 1, 0, 0, 0, 0), placed(1, 1, 0, 0, 1, 1)
    assert check_order(COLUMNS, rows, moved, grown=1) == ()
    assert counts(check_order(COLUMNS, rows, moved)) == {Kind.SCATTERED: 1}
    assert counts(check_order(COLUMNS, rows, back, grown=1)) == {Kind.SCATTERED: 1}
    assert check_order(COLUMNS, rows, back, grown=2) == ()
    swapped = [replace(moved[3], place=moved[4].place), replace(moved[4], place=moved[3].place)]
    wrong = check_order(COLUMNS, rows, [*moved[:3], *swapped, moved[5]], grown=1)
    assert counts(wrong) == {Kind.REORDERED: 1}


def test_equal_records_do_not_hide_an_order() -> None:
    """The first of equal rows has the lowest rank: the most favourable assignment."""
    rows = [Expected(("a", 1, 1), 1, (), (("p",), rank)) for rank in (5, 2)]
    rows.append(Expected(("b", 1, 1), 1, (), (("p",), 3)))
    seen = [
        Seen(Place(OUT, 0, 0), ("a", 1, 1), 1),
        Seen(Place(OUT, 0, 1), ("b", 1, 1), 1),
        Seen(Place(OUT, 0, 2), ("a", 1, 1), 1),
    ]
    assert check_order(COLUMNS, rows, seen) == ()
