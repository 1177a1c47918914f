"""Encoding of markers, boundaries and activity."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BrokenInvariantError, RefusedError
from pipeline.ids import (
    BatchId,
    Epoch,
    Incarnation,
    Millis,
    Offset,
    SourceId,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.markers.codec import (
    decode_activity,
    decode_boundary,
    decode_marker,
    encode_activity,
    encode_boundary,
    encode_marker,
)
from pipeline.markers.commit_marker import CommitMarker, Judged, LeftOutput, Totals
from pipeline.markers.cut import Cut
from pipeline.markers.gap import Gap, Omitted
from pipeline.markers.positions import InputPartition, LeftSource, MarkedSource
from pipeline.markers.refused import Refused
from pipeline.markers.signals import ActivityRecord, BoundaryRecord
from tests.unit.lanes.marked import marked

PLACE = "topic tolls.speed.markers, offset 7"
NAMES = st.text(min_size=1, max_size=8)
COUNTS = st.integers(0, 2**63 - 1)
INSTANTS = st.integers(-(2**63), 2**63 - 1).map(Millis)
JUDGED = st.builds(
    Judged, COUNTS, COUNTS, st.booleans(), COUNTS, COUNTS, results=st.none() | COUNTS
)
OFFSETS = st.dictionaries(st.integers(0, 999), COUNTS.map(Offset), max_size=3)
NUMBERS = st.dictionaries(st.integers(0, 999), COUNTS, max_size=3)
PLACES = st.tuples(NAMES.map(TopicId), st.integers(0, 999))
LEFT_OUTPUTS = st.builds(
    LeftOutput, st.none() | INSTANTS, st.dictionaries(PLACES, COUNTS.map(Offset), max_size=3)
)


@st.composite
def sources(draw: st.DrawFn) -> MarkedSource:
    """A source that reads one or two topics."""
    names = draw(st.lists(NAMES, min_size=1, max_size=2, unique=True))
    return MarkedSource(
        id=SourceId(draw(NAMES)),
        name=StreamName(draw(NAMES)),
        definition=draw(NAMES),
        timing=draw(NAMES),
        topics=tuple((TopicName(name), TopicId(f"{name}!")) for name in names),
        skipped_ms=draw(st.none() | INSTANTS),
        settled_ms=draw(st.none() | INSTANTS),
    )


def offsets(draw: st.DrawFn, known: Sequence[MarkedSource]) -> dict[InputPartition, Offset]:
    """Offsets in topics that some sources read."""
    return {
        InputPartition(source.name, topic, partition): Offset(number)
        for source in known
        for topic, _ in source.topics
        for partition, number in draw(NUMBERS).items()
    }


def times(draw: st.DrawFn, known: Sequence[MarkedSource]) -> dict[InputPartition, Millis]:
    """The same numbers as times."""
    return {at: Millis(number) for at, number in offsets(draw, known).items()}


@st.composite
def lefts(draw: st.DrawFn) -> LeftSource:
    """A source that is no longer read."""
    source = draw(sources())
    one = (source,)
    return LeftSource(source, offsets(draw, one), offsets(draw, one), times(draw, one))


OMITTED = st.builds(Omitted, NAMES.map(TopicName), COUNTS, COUNTS.map(Offset), COUNTS.map(Offset))
GAPS = st.builds(
    Gap,
    NAMES.map(Incarnation),
    st.lists(OMITTED, max_size=3).map(tuple),
    st.none() | INSTANTS,
    INSTANTS,
    INSTANTS,
    INSTANTS,
)


@st.composite
def markers(draw: st.DrawFn) -> CommitMarker:
    """A marker whose positions are in topics of its sources."""
    known = draw(
        st.lists(sources(), max_size=2, unique_by=(lambda one: one.id, lambda one: one.name))
    )
    refused = st.builds(Refused, st.none() | INSTANTS, st.dictionaries(COUNTS, COUNTS, max_size=3))
    return CommitMarker(
        epoch=Epoch(draw(COUNTS)),
        incarnation=Incarnation(draw(NAMES)),
        batch=BatchId(draw(st.integers(-1, 2**40))),
        start=offsets(draw, known),
        end=offsets(draw, known),
        needed=offsets(draw, known),
        late_ms=draw(st.none() | INSTANTS),
        eviction_ms=draw(st.none() | INSTANTS),
        progress=times(draw, known),
        late_settled=BatchId(draw(st.integers(-1, 2**40))),
        boundary_ms=draw(st.none() | INSTANTS),
        totals=draw(st.builds(Totals, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)),
        written_at_ms=draw(INSTANTS),
        state=draw(st.text()),
        refused=draw(st.dictionaries(NAMES, refused)),
        letters=draw(st.text()),
        outputs_left=draw(st.dictionaries(NAMES, LEFT_OUTPUTS, max_size=3)),
        judged=draw(st.none() | JUDGED),
        plan=draw(st.text()),
        chosen=draw(st.booleans()),
        anew=draw(st.text()),
        letters_from=draw(OFFSETS),
        output=draw(st.text()),
        output_ends=draw(OFFSETS),
        sources=tuple(known),
        left=tuple(draw(st.lists(lefts(), max_size=2))),
        gap=draw(st.none() | GAPS),
        cut=cut(draw, known),
        repeated=draw(st.lists(NAMES, max_size=2).map(tuple)),
    )


def cut(draw: st.DrawFn, known: Sequence[MarkedSource]) -> Cut | None:
    """A cut, or none."""
    if draw(st.booleans()):
        return None
    event_ms = draw(st.none() | INSTANTS)
    return Cut(draw(NAMES), offsets(draw, known), event_ms, draw(st.integers(1, 999)))


MARKERS = markers()
BOUNDARIES = st.builds(
    BoundaryRecord,
    NAMES,
    NAMES,
    COUNTS.map(Epoch),
    INSTANTS,
    st.dictionaries(st.integers(0, 999), COUNTS.map(Offset), max_size=5),
)
ACTIVITIES = st.builds(ActivityRecord, NAMES, NAMES, COUNTS.map(Epoch), st.booleans())


@given(MARKERS)
def test_a_marker_without_a_cut_is_written_as_before(marker: CommitMarker) -> None:
    """A lane with precise recovery writes what it wrote before there was another one."""
    written = json.loads(encode_marker(marker))
    assert ("cut" in written) == (marker.cut is not None)
    assert ("repeated" in written) == bool(marker.repeated)


@given(MARKERS)
def test_a_marker_round_trips(marker: CommitMarker) -> None:
    """Every field is preserved."""
    assert decode_marker(encode_marker(marker), PLACE) == marker


@given(BOUNDARIES)
def test_a_boundary_round_trips(record: BoundaryRecord) -> None:
    """Every field is preserved."""
    assert decode_boundary(encode_boundary(record), PLACE) == record


@given(ACTIVITIES)
def test_an_activity_round_trips(record: ActivityRecord) -> None:
    """Every field is preserved."""
    assert decode_activity(encode_activity(record), PLACE) == record


@given(MARKERS)
def test_equal_markers_are_equal_bytes(marker: CommitMarker) -> None:
    """Independent of the order in which positions were collected."""
    backward = replace(marker, end=dict(reversed(list(marker.end.items()))))
    assert encode_marker(backward) == encode_marker(marker)


@given(BOUNDARIES)
def test_equal_boundaries_are_equal_bytes(record: BoundaryRecord) -> None:
    """Independent of the order in which positions were collected."""
    backward = replace(record, positions=dict(reversed(list(record.positions.items()))))
    assert encode_boundary(backward) == encode_boundary(record)


SOURCE, TOPIC_ID = "id of sightings/0", "id of sightings"


def test_a_position_without_a_source_is_not_written() -> None:
    """Its source would be unknown to readers."""
    at = InputPartition(StreamName("cars"), TopicName("sightings"), 0)
    marker = decode_marker(json.dumps(example()).encode(), PLACE)
    for lost in (replace(marker, sources=()), replace(marker, sources=marked({OTHER: 0}))):
        with pytest.raises(BrokenInvariantError, match="no source reads") as caught:
            encode_marker(lost)
        assert caught.value.place == f"topic {at.topic}, partition 0"


OTHER = InputPartition(StreamName("cars"), TopicName("elsewhere"), 0)


def example() -> dict[str, object]:
    """The stored fields of a marker."""
    marker = CommitMarker(
        epoch=Epoch(3),
        incarnation=Incarnation("one"),
        batch=BatchId(7),
        start={InputPartition(StreamName("cars"), TopicName("sightings"), 0): Offset(4)},
        end={InputPartition(StreamName("cars"), TopicName("sightings"), 0): Offset(9)},
        needed={},
        late_ms=None,
        eviction_ms=Millis(5),
        progress={},
        late_settled=BatchId(7),
        boundary_ms=None,
        totals=Totals(5, 4, 1, 0),
        written_at_ms=Millis(1_000),
        state="digest",
        sources=marked({InputPartition(StreamName("cars"), TopicName("sightings"), 0): 0}),
    )
    found: dict[str, object] = json.loads(encode_marker(marker))
    return found


def test_a_marker_of_an_earlier_version_has_no_checksum_of_its_results() -> None:
    """It may be missing."""
    members = example()
    judged = {"records": 1, "bad": 0, "late": False, "refused": 0, "failed": 0}
    found = decode_marker(json.dumps({**members, "judged": judged}).encode(), PLACE)
    assert found.judged == Judged(1, 0, late=False, refused=0, failed=0)
    judged = {**judged, "results": 7}
    found = decode_marker(json.dumps({**members, "judged": judged}).encode(), PLACE)
    assert found.judged == Judged(1, 0, late=False, refused=0, failed=0, results=7)


def test_a_marker_without_a_gap_does_not_mention_one() -> None:
    """Its bytes are those of an earlier version; a damaged gap is reported as any other field."""
    members = example()
    assert "gap" not in members
    value = json.dumps({**members, "gap": {"incarnation": "two"}}).encode()
    with pytest.raises(BrokenInvariantError, match="gap: omitted is missing"):
        decode_marker(value, PLACE)


def test_unknown_fields_are_ignored() -> None:
    """Within a version, fields may be added."""
    members = example()
    value = json.dumps({**members, "colour": "blue"}).encode()
    assert decode_marker(value, PLACE) == decode_marker(json.dumps(members).encode(), PLACE)


@pytest.mark.parametrize(
    ("decode", "what"),
    [
        (decode_marker, "commit marker"),
        (decode_boundary, "boundary record"),
        (decode_activity, "activity record"),
    ],
)
def test_a_newer_format_is_refused_with_a_message(
    decode: Callable[[bytes, str], object], what: str
) -> None:
    """An older node must not guess the semantics of a newer format."""
    with pytest.raises(RefusedError, match=f"newer Medusa wrote this {what}: format 2") as caught:
        decode(b'{"format":2}', PLACE)
    assert caught.value.place == PLACE
    assert "newer one" in caught.value.hint


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"format": 0}, "unknown format 0"),
        ({"format": "1"}, "format should be a whole number"),
        ({"epoch": "3"}, "epoch should be a whole number"),
        ({"epoch": True}, "epoch should be a whole number"),
        ({"epoch": 1.5}, "epoch should be a whole number"),
        ({"incarnation": 3}, "incarnation should be a text"),
        ({"late_ms": "never"}, "late_ms should be a whole number"),
        ({"end": []}, "end: an object was expected"),
        ({"end": {"cars": 3}}, "end, cars: an object was expected"),
        ({"end": {SOURCE: {TOPIC_ID: {"x": 1}}}}, "x should be a partition number"),
        ({"end": {SOURCE: {TOPIC_ID: {"0": None}}}}, "0 should be a whole number"),
        ({"end": {"other/0": {TOPIC_ID: {"0": 3}}}}, "end should be positions in topics that"),
        ({"end": {SOURCE: {"other": {"0": 3}}}}, "end should be positions in topics that"),
        ({"sources": {}}, "sources should be a list"),
        ({"sources": [{"id": SOURCE}]}, "sources: topics is missing"),
        ({"totals": {}}, "totals: records_in is missing"),
    ],
)
def test_a_damaged_marker_is_reported_with_field_and_place(
    change: dict[str, object], complaint: str
) -> None:
    """A value of another type is never converted."""
    value = json.dumps({**example(), **change}).encode()
    with pytest.raises(BrokenInvariantError, match=complaint) as caught:
        decode_marker(value, PLACE)
    assert caught.value.place == PLACE


@pytest.mark.parametrize("name", sorted(example()))
def test_a_marker_without_a_field_is_damaged(name: str) -> None:
    """No field has a silent default."""
    members = {k: v for k, v in example().items() if k != name}
    with pytest.raises(BrokenInvariantError, match=f"{name} is missing"):
        decode_marker(json.dumps(members).encode(), PLACE)


@pytest.mark.parametrize("value", [b"", b"\xff\xfe", b"{", b"[]", b"null", b"7"])
def test_a_value_that_is_no_object_is_damaged(value: bytes) -> None:
    """Truncated or foreign bytes are reported as our own error, never as another."""
    with pytest.raises(BrokenInvariantError):
        decode_marker(value, PLACE)
