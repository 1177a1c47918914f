"""Heartbeats as JSON."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import NewerFormatError
from pipeline.formats import NEWEST
from pipeline.heartbeats.codec import NoHeartbeatError, decode, encode
from pipeline.heartbeats.heartbeat import Heartbeat
from pipeline.heartbeats.steps import StepAge
from pipeline.ids import Millis, NodeId, SteadyMillis

numbers = st.integers(min_value=0, max_value=2**63)
steps = st.dictionaries(
    st.text(max_size=20), st.tuples(st.text(max_size=5), numbers), max_size=5
).map(
    lambda found: tuple(
        StepAge(name, *one) for name, one in sorted(found.items(), key=lambda one: -one[1][1])
    )
)
heartbeats = st.builds(
    Heartbeat,
    node=st.text(max_size=70).map(NodeId),
    life=numbers.map(Millis),
    number=numbers,
    sent_ms=numbers.map(SteadyMillis),
    agent_ms=numbers,
    ended=st.booleans(),
    steps=st.none() | steps,
    wall_ms=st.none() | numbers.map(Millis),
)
STEPS = (StepAge("tolls.moving", "batch", 70),)
ONE = Heartbeat(NodeId("n1"), Millis(7), 1, SteadyMillis(2), 3)


@given(heartbeats)
def test_a_heartbeat_is_read_as_it_was_written(heartbeat: Heartbeat) -> None:
    """All fields."""
    assert decode(encode(heartbeat), "here") == heartbeat


def test_an_unknown_field_is_ignored() -> None:
    """Of a later version."""
    fields = {**json.loads(encode(ONE)), "colour": "red"}
    assert decode(json.dumps(fields).encode(), "here") == ONE


def test_a_heartbeat_of_an_earlier_version_says_nothing_of_steps() -> None:
    """One of a later version may say it in another way: what is not understood is left out."""
    fields = json.loads(encode(replace(ONE, steps=STEPS)))
    assert decode(json.dumps(fields).encode(), "here").steps == STEPS
    fields["steps"] |= {"a": 3, "b": [], "c": [1, 2], "d": ["batch", "1"], "e": ["batch", 1, 2]}
    assert decode(json.dumps(fields).encode(), "here").steps == STEPS
    fields["steps"] = 3
    assert decode(json.dumps(fields).encode(), "here").steps == ()
    del fields["steps"]
    assert decode(json.dumps(fields).encode(), "here") == ONE


def test_a_heartbeat_of_an_earlier_version_has_no_wall_time() -> None:
    """One that has something else there is none."""
    fields = json.loads(encode(replace(ONE, wall_ms=Millis(9))))
    assert decode(json.dumps(fields).encode(), "here").wall_ms == 9
    with pytest.raises(NoHeartbeatError):
        decode(json.dumps({**fields, "wall_ms": "9"}).encode(), "here")
    del fields["wall_ms"]
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
