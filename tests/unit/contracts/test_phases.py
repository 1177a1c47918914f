"""Transition tables of the protocols, and their diagrams in the documentation."""

from pathlib import Path

import pytest

from pipeline.contracts.phases import (
    RECEIVING,
    SENDING,
    STAY,
    Receiving,
    ReceivingEvent,
    Sending,
    SendingEvent,
    Stay,
    StayEvent,
    after,
    diagram,
)
from pipeline.errors import BrokenInvariantError

DOCUMENT = Path(__file__).parents[3] / "docs" / "federation" / "protocol.md"


def test_the_documented_diagrams_are_the_tables() -> None:
    """Each is generated from the code."""
    text = DOCUMENT.read_text("utf-8")
    for drawn in (
        diagram(SENDING, Sending.IDLE),
        diagram(RECEIVING, Receiving.FREE),
        diagram(STAY, Stay.RUNNING),
    ):
        assert f"```mermaid\n{drawn}\n```" in text


def test_every_phase_and_event_is_in_a_table() -> None:
    """None is left over."""
    assert {event for _, event in SENDING} == set(SendingEvent)
    assert {event for _, event in RECEIVING} == set(ReceivingEvent)
    assert {event for _, event in STAY} == set(StayEvent)
    assert {phase for phase, _ in SENDING} == set(Sending)
    assert {phase for phase, _ in RECEIVING} == set(Receiving)


def test_an_illegal_event_is_raised() -> None:
    """As a broken invariant."""
    with pytest.raises(BrokenInvariantError, match="idle cannot have taken"):
        after(SENDING, Sending.IDLE, SendingEvent.TAKEN)
