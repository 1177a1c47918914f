"""The stored form of the catalog's records."""

import json
from dataclasses import MISSING, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.catalog.codec import decode, encode
from pipeline.catalog.fragment_status import FragmentStatus
from pipeline.catalog.records import (
    DesiredState,
    EpochRecord,
    FormatRecord,
    FragmentRecord,
    MissingGuidRecord,
    MissingSchemaRecord,
    NetworkRecord,
    NetworkVersionRecord,
    NodeRecord,
    OwnerRecord,
    ParticipantRecord,
    Record,
    RevisionRecord,
)
from pipeline.errors import BrokenInvariantError, RefusedError
from pipeline.formats import NEWEST
from pipeline.ids import (
    Epoch,
    FragmentName,
    Incarnation,
    NetworkId,
    NetworkName,
    NetworkVersion,
    ParticipantId,
    TopicName,
)
from pipeline.lanes.expiring import Cause, ExpiringRecords, Use
from pipeline.planner.state import OnChange
from tests.unit.catalog.support import (
    LIFE,
    ME,
    NODE1,
    NOTHING_READ,
    NOW,
    network,
    network_version,
    node,
)

RECORDS = st.one_of(
    st.builds(FormatRecord, format=st.integers(1, NEWEST)),
    st.builds(RevisionRecord),
    st.builds(ParticipantRecord),
    st.builds(NodeRecord),
    st.builds(NetworkRecord),
    st.builds(NetworkVersionRecord),
    st.builds(FragmentRecord),
    st.builds(OwnerRecord),
    st.builds(EpochRecord),
    st.builds(FragmentStatus),
    st.builds(MissingSchemaRecord),
    st.builds(MissingGuidRecord),
)

ADDED = {
    FragmentStatus: {
        "rebuild_batches", "rebuild_batches_done", "pace_ms", "event_ms", "late_since_ms",
        "late_span_ms", "late_read", "late_records", "settles_at_ms", "unreachable", "expiring",
        "gap_until_ms", "gap_omitted", "tentative", "tentative_since_ms", "tentative_held_since_ms",
        "tentative_missing", "tentative_generation", "tentative_published", "tentative_confirmed",
        "tentative_replaced", "tentative_undone", "tentative_open", "tentative_problem",
        "tentative_unsettled", "waits",
    },
    FragmentRecord: {
        "begun_anew", "nodes", "apart", "cost_us", "active_standbys", "passive_standbys",
        "checkpoint_every_ms", "priority", "amnesia", "may_be_tentative",
    },
    NetworkRecord: {"filled_before"},
    OwnerRecord: {"rests"},
    NodeRecord: {"labels", "capacity", "most_fragments"},
}  # fmt: skip
"""An earlier version writes records without these fields."""

FRAGMENT = FragmentRecord(
    NetworkId(ParticipantId("local"), NetworkName("tolls")),
    FragmentName("moving"),
    NetworkVersion(3),
    DesiredState.RUNNING,
    "d1",
    ((TopicName("car-sightings"), "NE/Uj7JHRI2exX4Ephrg5A"),),
    choice=None,
    begins=(),
    succeeds=None,
)


@given(RECORDS)
def test_a_record_comes_back_equal(record: Record) -> None:
    """Decoding an encoded record returns an equal record."""
    assert decode(type(record), encode(record), "/x") == record


def test_the_stored_form_is_fixed() -> None:
    """The bytes of a record never change: older catalogs must stay readable."""
    assert encode(FRAGMENT) == (
        b'{"active_standbys":0,"amnesia":false,"apart":[],"begins":[],"begun_anew":null,"checkpoint_every_ms":0,"choice":null,"cost_us":0,"desired":"running","digest":"d1",'
        b'"format":1,"fragment":"moving","may_be_tentative":false,"network":{"name":"tolls","participant":"local"},"nodes":"","passive_standbys":0,"priority":"normal",'
        b'"succeeds":null,"topic_ids":[["car-sightings","NE/Uj7JHRI2exX4Ephrg5A"]],"version":3}'
    )


def test_a_fragment_of_an_earlier_version_may_run_on_every_node() -> None:
    """Its record says nothing of a placement."""
    earlier = (
        b'{"begins":[],"choice":null,"desired":"running","digest":"d1","format":1,"fragment":"moving",'
        b'"network":{"name":"tolls","participant":"local"},'
        b'"succeeds":null,"topic_ids":[["car-sightings","NE/Uj7JHRI2exX4Ephrg5A"]],"version":3}'
    )
    assert decode(FragmentRecord, earlier, "/x") == FRAGMENT


def test_a_choice_is_decoded_unchanged() -> None:
    """With the incarnation of the lane that it applies to."""
    chosen = replace(FRAGMENT, choice=(OnChange.EMPTY, Incarnation("3-7")))
    assert decode(FragmentRecord, encode(chosen), "/x") == chosen


def test_a_newer_format_is_rejected() -> None:
    """A record of a newer version of Medusa is not decoded."""
    newer = json.dumps({"format": 2, "anything": "else"}).encode()
    with pytest.raises(RefusedError, match="wrote this record: format 2, this one reads up to 1"):
        decode(OwnerRecord, newer, "/x/owner")


def test_unknown_fields_are_ignored_and_missing_ones_take_their_default() -> None:
    """A field with a default can be added without a new format."""
    assert decode(FormatRecord, b'{"format":1,"colour":"red"}', "/x") == FormatRecord(1)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"not json",
        b"[]",
        b"7",
        b"{}",
        b'{"format":"1"}',
        b'{"format":true}',
        b'{"format":1}',
        b"\xff\xfe",
    ],
)
def test_the_error_for_damaged_bytes_contains_the_path(value: bytes) -> None:
    """Any bytes that are not a record are damage."""
    with pytest.raises(BrokenInvariantError, match="catalog /x") as caught:
        decode(OwnerRecord, value, "/x")
    assert "OwnerRecord" in caught.value.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epoch", "2"),
        ("epoch", True),
        ("epoch", 2.0),
        ("state", "dancing"),
        ("node", 7),
        ("inputs", "x"),
        ("inputs", [["a"]]),
        ("inputs", [["a", "b"]]),
        ("network", "tolls"),
        ("network", {"name": "tolls"}),
        ("network", {"name": "tolls", "participant": 7}),
    ],
)
def test_a_field_of_another_type_is_damage(name: str, value: object) -> None:
    """A wrong type is detected when it is read, not where it is used; the error names the field."""
    plain = json.loads(encode(NOTHING_READ)) | {name: value}
    with pytest.raises(BrokenInvariantError, match=name):
        decode(FragmentStatus, json.dumps(plain).encode(), "/x")


OWNED = OwnerRecord(NODE1, ME, Epoch(3), NOW, life=NOW)


@pytest.mark.parametrize(
    "record", [node(), network(), network_version(), FRAGMENT, OWNED, NOTHING_READ]
)
def test_a_record_without_a_field_is_damage(record: Record) -> None:
    """Writers write all fields; only one that was added later has a default."""
    plain = json.loads(encode(record))
    added = {field.name for field in fields(record) if field.default is not MISSING}
    assert added == ADDED.get(type(record), set())
    for name in plain.keys() - {"format"} - added:
        less = json.dumps({n: value for n, value in plain.items() if n != name}).encode()
        with pytest.raises(BrokenInvariantError, match=f"{name} is missing"):
            decode(type(record), less, "/x")


def test_a_status_of_an_earlier_version_has_examined_no_retention() -> None:
    """Such a node may be up beside newer ones."""
    expiring = ExpiringRecords(TopicName("in"), (0, 1), Use.UNREAD, Cause.AGE, 7, NOW, NOW)
    status = replace(NOTHING_READ, expiring=(expiring,))
    assert decode(FragmentStatus, encode(status), "/x") == status
    plain = json.loads(encode(status))
    for name in ADDED[FragmentStatus]:
        del plain[name]
    assert decode(FragmentStatus, json.dumps(plain).encode(), "/x").expiring is None


def test_none_is_stored_as_null() -> None:
    """And decoded as None."""
    stored = json.loads(encode(NOTHING_READ))
    assert stored["boundary_ms"] is None
    assert decode(FragmentStatus, encode(NOTHING_READ), "/x").boundary_ms is None


def test_equal_records_are_equal_bytes() -> None:
    """Unchanged records can be recognised by their bytes."""
    facts = (
        NetworkId(ParticipantId("local"), NetworkName("a")),
        NetworkVersion(1),
        LIFE,
        (TopicName("t"),),
        (),
    )
    assert encode(NetworkRecord(*facts)) == encode(NetworkRecord(*facts))
