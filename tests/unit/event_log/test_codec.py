"""Entries of the event log as records."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import NewerFormatError
from pipeline.event_log.codec import NoEntryError, decode, encode
from pipeline.event_log.event import EXPLANATIONS, EventKind, LoggedEvent, one_line
from pipeline.ids import Millis

NAMES = st.text(min_size=1, max_size=8)
EVENTS = st.builds(
    LoggedEvent,
    at_ms=st.integers(0, 2**53).map(Millis),
    kind=st.sampled_from(EventKind) | NAMES,
    by=st.text(),
    network=st.text(),
    fragment=st.text(),
    node=st.text(),
    why=st.text(),
    facts=st.dictionaries(NAMES, st.text(), max_size=3).map(lambda one: tuple(one.items())),
    parts_ms=st.dictionaries(NAMES, st.integers(0, 10**9), max_size=3).map(
        lambda one: tuple(one.items())
    ),
)


@given(event=EVENTS)
def test_an_entry_is_decoded_as_it_was(event: LoggedEvent) -> None:
    """Every field, and kinds that this program does not have."""
    assert decode(encode(event), "here") == event


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"[]", b"7", b'{"format": 1}', b'{"a": 1}'])
def test_what_is_no_entry_is_refused(value: bytes | None) -> None:
    """Anybody may write into the topic."""
    with pytest.raises(NoEntryError, match="offset 3"):
        decode(value, "topic t, offset 3")


def test_fields_of_other_types_are_empty() -> None:
    """Only time and format are needed."""
    value = {"format": 1, "at_ms": 3, "kind": 4, "by": None, "facts": [1], "parts_ms": {"a": "b"}}
    assert decode(json.dumps(value).encode(), "here") == LoggedEvent(Millis(3), "", "")


def test_a_later_format_is_refused() -> None:
    """Its meaning is not known."""
    with pytest.raises(NewerFormatError):
        decode(b'{"format": 99, "at_ms": 1}', "here")


def test_every_kind_is_explained() -> None:
    """By a sentence."""
    assert set(EXPLANATIONS) == set(EventKind)
    assert all(text.endswith(".") for text in EXPLANATIONS.values())
    assert LoggedEvent(Millis(0), "of-later", "me").explanation == ""


def test_texts_have_one_line() -> None:
    """Errors have several, and may have characters that a terminal obeys."""
    assert one_line("no disk\n  hint:\tis it\x1b[2J full?") == "no disk hint: is it [2J full?"
    assert len(one_line("x" * 9_000)) == 501
    assert decode(encode(LoggedEvent(Millis(0), "x", "\udcff")), "here").by == "\udcff"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("net", True), ("net.one", True), ("one", True), ("two", True), ("net.two", True),
     ("n1", True), ("other", False), ("net.n1", False)],
)  # fmt: skip
def test_an_entry_concerns_what_it_names(name: str, expected: bool) -> None:  # noqa: FBT001
    """Lists of fragments, too."""
    event = LoggedEvent(Millis(0), "x", "me", "net", "one", "n1", facts=(("fragments", "one,two"),))
    assert event.concerns(name) is expected
