from collections.abc import Iterable
from importlib import resources
from pathlib import Path

import pytest

from pipeline.deploy.documents import read_document
from pipeline.examples.example import Result
from pipeline.examples.judge import DeadLetterCheck, compared, newest_ms
from pipeline.ids import BoxName, Millis, ParticipantId
from pipeline.network.model import Network
from pipeline.planner import planner
from pipeline.reference.compare import Row
from pipeline.reference.inputs import Due, InputRecord, Inputs, Place, Refusal

NETWORK = read_document(
    Path(str(resources.files("pipeline.projects") / "tolls" / "network.yaml")), lambda _: None
).network
PLAN = planner.plan(NETWORK, ParticipantId("local"))
TOPIC = "car-sightings"
FRAGMENTS = ("toll_notifications", "tolls", "tow_dispatch")


def given(*times: int | None, partition: int = 0) -> tuple[InputRecord, ...]:
    """Records with these event times in the order of their offsets; None: not readable."""
    return tuple(
        InputRecord(Place(TOPIC, partition, n), None if at_ms is None else {"seen_at": at_ms})
        for n, at_ms in enumerate(times)
    )


def refusal(offset: int, reason: str, fragment: str = "tolls") -> Refusal:
    """A dead letter about a record of partition 0."""
    return Refusal(fragment, Place(TOPIC, 0, offset), "", reason, "the letter")


def wrong(records: tuple[InputRecord, ...], *refusals: Refusal) -> list[str]:
    """The faults of dead letters."""
    return list(DeadLetterCheck(Inputs({"sightings": records}, refusals), NETWORK, PLAN).wrong())


def result(*due: Due) -> Result:
    """An output with these expected rows."""

    def rows(inputs: Inputs, network: Network) -> Iterable[Due]:
        assert (inputs, network) == (Inputs({}), NETWORK)
        return due

    return Result(BoxName("tolls"), "tolls", ("car", "toll"), ("car",), rows, str)


def outcome(due: Iterable[Due], came: list[Row]) -> tuple[int, int, int]:
    """The numbers of due, missing and unexpected rows; the output is complete up to 10."""
    found = compared(result(*due), Inputs({}), NETWORK, came, Millis(10))
    return found.expected, len(found.missing), len(found.unexpected) + len(found.duplicated)


def test_rows_due_later_may_be_missing_but_not_wrong() -> None:
    """Up to the completeness of the output all rows are required; later ones must be right."""
    due = [Due(("a", 1), 10), Due(("b", 1), 11), Due(("c", 1), 12)]
    assert outcome(due, [("a", 1), ("c", 1)]) == (2, 0, 0)
    assert outcome(due, [("c", 1)]) == (2, 1, 0)
    assert outcome(due, [("a", 1), ("d", 1)]) == (1, 0, 1)


def test_equal_rows_count_as_often_as_they_are_due() -> None:
    """One of them late and one early are two."""
    due = [Due(("a", 1), 10), Due(("a", 1), 11)]
    assert outcome(due, [("a", 1)]) == (1, 0, 0)
    assert outcome(due, [("a", 1)] * 2) == (2, 0, 0)
    assert outcome(due, [("a", 1)] * 3) == (2, 0, 1)


def test_the_newest_event_time_is_that_of_all_records() -> None:
    """Unreadable ones have none; without records there is no time."""
    assert newest_ms({"sightings": given(5, None, 9, 7)}, NETWORK) == 9
    assert newest_ms({"sightings": ()}, NETWORK) == 0


def test_a_late_record_is_refused_with_a_valid_reason() -> None:
    """One ms more behind its partition than the lateness of the stream is enough."""
    assert wrong(given(10_000, 4_999), refusal(1, "late")) == []
    assert wrong(given(10_000, 4_999), refusal(1, "partly_late")) == []


@pytest.mark.parametrize(
    ("records", "letter", "says"),
    [
        (given(10_000, 5_000), refusal(1, "late"), "a record in time was called late"),
        (given(4_999, 10_000), refusal(0, "late"), "a record in time was called late"),
        (given(10_000), refusal(0, "undecodable"), "a good record was refused"),
        (given(10_000), refusal(7, "late"), "no record that was sent"),
        (given(1), Refusal("tolls", None, "", "x", "the letter"), "a result could not be computed"),
    ],
)
def test_a_dead_letter_without_a_valid_reason_is_reported(
    records: tuple[InputRecord, ...], letter: Refusal, says: str
) -> None:
    """With its message."""
    assert wrong(records, letter) == [f"{says}: the letter"]


def test_an_unreadable_record_has_to_be_refused_by_every_reader() -> None:
    """Each fragment decides separately; a missing one is reported with record and fragment."""
    dead_letters = [refusal(1, "undecodable", name) for name in FRAGMENTS]
    assert {fragment.name for fragment in PLAN.fragments} == set(FRAGMENTS)
    assert wrong(given(1, None), *dead_letters) == []
    (missing,) = wrong(given(1, None), *dead_letters[1:])
    assert missing.endswith("offset 1 cannot be read, and toll_notifications took it")


def test_lateness_is_counted_in_each_partition() -> None:
    """A partition with a larger event time makes no record of another one late."""
    records = (*given(20_000, partition=1), *given(10_000))
    assert wrong(records, refusal(0, "late")) == ["a record in time was called late: the letter"]
