"""Heartbeats as JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import NewerFormatError
from pipeline.formats import NEWEST
from pipeline.heartbeats.codec import NoHeartbeatError, decode, encode
from pipeline.heartbeats.heartbeat import Heartbeat
from pipeline.ids import Millis, NodeId, SteadyMillis

numbers = st.integers(min_value=0, max_value=2**63)
heartbeats = st.builds(
    Heartbeat,
    node=st.text(max_size=70).map(NodeId),
    life=numbers.map(Millis),
    number=numbers,
    sent_ms=numbers.map(SteadyMillis),
    agent_ms=numbers,
    ended=st.booleans(),
)
ONE = Heartbeat(NodeId("n1"), Millis(7), 1, SteadyMillis(2), 3)


@given(heartbeats)
def test_a_heartbeat_is_read_as_it_was_written(heartbeat: Heartbeat) -> None:
    """All fields."""
    assert decode(encode(heartbeat), "here") == heartbeat


def test_an_unknown_field_is_ignored() -> None:
    """Of a later version."""
    fields = {**json.loads(encode(ONE)), "colour": "red"}
    assert decode(json.dumps(fields).encode(), "here") == ONE


@pytest.mark.parametrize("value", [None, b"", b"?", b"[]", b"3", b"{}", b"[" * 100_000])
def test_something_else_is_no_heartbeat(value: bytes | None) -> None:
    """The error says where it is."""
    with pytest.raises(NoHeartbeatError) as caught:
        decode(value, "topic t")
    assert caught.value.place == "topic t"


@pytest.mark.parametrize(
    "name", ["format", "node", "life", "number", "sent_ms", "agent_ms", "ended"]
)
@pytest.mark.parametrize("wrong", [None, [], 1.5, {}])
def test_every_field_is_required(name: str, wrong: object) -> None:
    """With its type."""
    fields = json.loads(encode(ONE))
    with pytest.raises(NoHeartbeatError):
        decode(json.dumps({**fields, name: wrong}).encode(), "here")
    del fields[name]
    with pytest.raises(NoHeartbeatError):
        decode(json.dumps(fields).encode(), "here")


def test_a_newer_format_is_refused() -> None:
    """Its fields may mean something else."""
    fields = {**json.loads(encode(ONE)), "format": NEWEST + 1}
    with pytest.raises(NewerFormatError):
        decode(json.dumps(fields).encode(), "here")
