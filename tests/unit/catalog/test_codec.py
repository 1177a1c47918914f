"""The stored form of the catalog's records."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.catalog.codec import decode, encode
from pipeline.catalog.records import (
    DesiredState,
    EpochRecord,
    FormatRecord,
    FragmentRecord,
    FragmentStatus,
    LaneState,
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
from pipeline.ids import (
    Epoch,
    FragmentName,
    Incarnation,
    Millis,
    NetworkName,
    NetworkVersion,
    NodeId,
    ParticipantId,
    TopicName,
)
from pipeline.planner.state import OnChange
from tests.unit.catalog.support import LIFE

RECORDS = st.one_of(
    st.builds(FormatRecord),
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

FRAGMENT = FragmentRecord(
    NetworkName("tolls"),
    FragmentName("moving"),
    NetworkVersion(3),
    DesiredState.RUNNING,
    "d1",
    ((TopicName("car-sightings"), "NE/Uj7JHRI2exX4Ephrg5A"),),
)
STATUS = FragmentStatus(
    NetworkName("tolls"),
    FragmentName("moving"),
    NodeId("node1"),
    Epoch(2),
    LaneState.RUNNING,
    Millis(1000),
)


@given(RECORDS)
def test_a_record_comes_back_equal(record: Record) -> None:
    """Whatever is encoded decodes to the same record."""
    assert decode(type(record), encode(record), "/x") == record


def test_the_stored_form_stays_as_it_is() -> None:
    """The bytes of a record are fixed: older catalogs must stay readable."""
    assert encode(FRAGMENT) == (
        b'{"begins":[],"choice":null,"desired":"running","digest":"d1","format":1,"fragment":"moving","network":"tolls",'
        b'"succeeds":null,"topic_ids":[["car-sightings","NE/Uj7JHRI2exX4Ephrg5A"]],"version":3}'
    )


def test_a_fragment_of_an_earlier_version_has_no_choice() -> None:
    """What was stored before choices existed stays readable; a choice comes back as it was."""
    plain = json.loads(encode(FRAGMENT))
    del plain["choice"]
    assert decode(FragmentRecord, json.dumps(plain).encode(), "/x") == FRAGMENT
    chosen = replace(FRAGMENT, choice=(OnChange.EMPTY, Incarnation("3-7")))
    assert decode(FragmentRecord, encode(chosen), "/x") == chosen


def test_a_newer_format_is_refused_with_words() -> None:
    """A record of a newer version of Medusa is not guessed at."""
    newer = json.dumps({"format": 2, "anything": "else"}).encode()
    with pytest.raises(RefusedError, match="wrote this record: format 2, this one reads up to 1"):
        decode(OwnerRecord, newer, "/networks/x/owner")


def test_unknown_fields_are_ignored_and_missing_ones_take_their_default() -> None:
    """A field with a default can be added without a new format."""
    plain = json.loads(encode(STATUS))
    del plain["restarts"]
    plain["colour"] = "red"
    assert decode(FragmentStatus, json.dumps(plain).encode(), "/x") == STATUS


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
def test_damaged_bytes_say_where_they_are(value: bytes) -> None:
    """Whatever is not a record is damage, reported with its path."""
    with pytest.raises(BrokenInvariantError, match="catalog /networks/x") as caught:
        decode(OwnerRecord, value, "/networks/x")
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
    ],
)
def test_a_field_of_another_type_is_damage(name: str, value: object) -> None:
    """A wrong type is found when it is read, not where it is used; the field is named."""
    plain = json.loads(encode(STATUS)) | {name: value}
    with pytest.raises(BrokenInvariantError, match=name):
        decode(FragmentStatus, json.dumps(plain).encode(), "/x")


def test_an_absent_value_is_kept_absent() -> None:
    """None is stored and comes back as None."""
    stored = json.loads(encode(STATUS))
    assert stored["boundary_ms"] is None
    assert decode(FragmentStatus, encode(STATUS), "/x").boundary_ms is None


def test_equal_records_are_equal_bytes() -> None:
    """Unchanged records can be told by their bytes."""
    owner = ParticipantId("local")
    one = NetworkRecord(NetworkName("a"), owner, NetworkVersion(1), LIFE, (TopicName("t"),))
    two = NetworkRecord(NetworkName("a"), owner, NetworkVersion(1), LIFE, (TopicName("t"),))
    assert encode(one) == encode(two)
