"""Checks of dead letters: complete, justified and unique; the accepted records. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from brokers.records import KafkaRecord
from pipeline.ids import FragmentName, Millis, TopicName
from pipeline.lanes.dead_letter_reasons import LATENESS, Reason
from pipeline.lanes.dead_letters import PREFIX
from pipeline.names import is_redrive
from tests.faults.history import Fate, Finding, Kind, Letter, Place, Sent, place_of

Read = Mapping[FragmentName, frozenset[TopicName]]
"""The external topics that each fragment reads."""
Derived = tuple[Mapping[str, Any], int]
"""A result of a fragment that another one reads: its fields and its event time."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The sent records, and those that each fragment has accepted.

    `late`: the results of other fragments that were late for a fragment; `own`: topics that one
    fragment alone reads, whatever their stream: redrive topics.
    """

    sent: tuple[Sent, ...]
    letters: tuple[Letter, ...]
    late: Mapping[FragmentName, tuple[Derived, ...]] = field(default_factory=dict)
    own: Mapping[TopicName, FragmentName] = field(default_factory=dict)

    def of(self, fragment: str, stream: str, port: str | None = None) -> tuple[Sent, ...]:
        """The records of a stream that a fragment has accepted.

        Args:
            fragment: its name.
            stream: which of its inputs.
            port: one of several inputs of its box; a record that only another one refused is
                accepted there. Behind a union each path to it has a number: `left.1`.
        """
        refused = {
            letter.origin
            for letter in self.letters
            if letter.fragment == fragment
            if port is None or letter.port.partition(".")[0] in ("", port)
            if letter.reason != Reason.PARTLY_LATE.value
        }
        return tuple(
            record
            for record in self.sent
            if record.stream == stream and record.fields is not None and record.place not in refused
            if self.own.get(record.place.topic, fragment) == fragment
        )

    def closed(self, fragment: str) -> Mapping[Place, int]:
        """Partly late records, with the time up to which windows were closed."""
        return {
            letter.origin: int(letter.context["closed"])
            for letter in self.letters
            if letter.fragment == fragment and letter.reason == Reason.PARTLY_LATE.value
            if letter.origin is not None
        }


def letter_of(fragment: FragmentName, record: KafkaRecord) -> Letter:
    """The dead letter in a record of its topic."""
    context = {
        name.removeprefix(PREFIX): (value or b"").decode(errors="replace")
        for name, value in record.headers
        if name.startswith(PREFIX)
    }
    origin = None
    if "offset" in context:
        origin = Place(
            TopicName(context["topic"]), int(context["partition"]), int(context["offset"])
        )
    return Letter(
        fragment=fragment,
        place=place_of(record),
        origin=origin,
        key=record.key,
        value=record.value,
        # The topic's own timestamps are those of the dead letters' arrival.
        timestamp_ms=Millis(int(context.get("timestamp", record.timestamp_ms))),
        context=context,
    )


def check_letters(
    sent: Iterable[Sent], letters: Iterable[Letter], read: Read, late: Collection[Place] = ()
) -> tuple[Finding, ...]:
    """Invalid records are dead letters once, byte for byte; others are not, unless they were late.

    Args:
        sent: all sent records.
        letters: all dead letters.
        read: what each fragment reads of external topics.
        late: the results that fragments have marked as late; no other one may be.
    """
    known = {record.place: record for record in sent}
    by_origin: dict[tuple[FragmentName, Place, str], Letter] = {}
    found: list[Finding] = []
    for letter in letters:
        if letter.origin is None:
            message = letter.context.get("message", "")
            found.append(Finding(Kind.LETTER, f"{letter.place}: a result failed: {message}"))
            continue
        name = (letter.fragment, letter.origin, letter.port)
        if name in by_origin:
            text = (
                f"{letter.place} is the dead letter of {letter.origin}, as {by_origin[name].place}"
            )
            found.append(Finding(Kind.DUPLICATED, text))
        by_origin[name] = letter
        if letter.reason in LATENESS and letter.origin in late:
            found += _judge_closed(letter)
            continue
        found += _judge(letter, letter.origin, known.get(letter.origin), read)
    refused = {(fragment, origin) for fragment, origin, _ in by_origin}
    for record in known.values():
        if record.fate is not Fate.BAD:
            continue
        for fragment, topics in read.items():
            if record.place.topic in topics and (fragment, record.place) not in refused:
                text = f"{record.place} is bad, but no dead letter of fragment {fragment}"
                found.append(Finding(Kind.LOST, text))
    return tuple(found)


def check_inputs(
    sent: Iterable[Sent], stored_records: Iterable[KafkaRecord]
) -> tuple[Finding, ...]:
    """The input topics contain exactly the sent records at the acknowledged positions."""
    there = {place_of(record): record for record in stored_records}
    found = []
    for record in sent:
        stored = there.pop(record.place, None)
        if stored is None:
            found.append(Finding(Kind.INPUT, f"{record.place} was acknowledged, but is not there"))
        elif (stored.key, stored.value) != (record.key, record.value):
            found.append(Finding(Kind.INPUT, f"{record.place} holds another record than was sent"))
    found += [Finding(Kind.INPUT, f"{place} was sent by nobody") for place in sorted(there)]
    return tuple(found)


def _judge(letter: Letter, origin: Place, record: Sent | None, read: Read) -> Iterator[Finding]:
    external = origin.topic in read.get(letter.fragment, frozenset())
    if letter.reason in LATENESS and not external:
        text = f"{origin} of a derived stream was late: {letter.place}"
        yield Finding(Kind.LATE, text)
        return
    if record is None:
        yield Finding(Kind.UNEXPECTED, f"{letter.place} is the dead letter of {origin}: no such")
        return
    kept = (letter.key, letter.value, letter.timestamp_ms)
    if kept != (record.key, record.value, record.timestamp_ms):
        yield Finding(Kind.DIFFERENT, f"{letter.place} is not what stands at {origin}")
    why = letter.context.get("message", letter.reason)
    if letter.reason in LATENESS:
        yield from _judge_late(letter, record)
    elif record.fate is not Fate.BAD:
        text = f"{origin} is good, but {letter.place} refuses it: {why}"
        yield Finding(Kind.LETTER, text)


def _judge_late(letter: Letter, record: Sent) -> Iterator[Finding]:
    if record.fate is not Fate.MAYBE_LATE and not is_redrive(record.place.topic):
        text = f"{record.place} was sent in time, but {letter.place} calls it late"
        yield Finding(Kind.LATE, text)
    yield from _judge_closed(letter)


def _judge_closed(letter: Letter) -> Iterator[Finding]:
    event_ms, closed_ms = letter.context.get("event_time"), letter.context.get("closed")
    if event_ms is None or closed_ms is None or int(event_ms) > int(closed_ms):
        text = f"{letter.place}: event time {event_ms} is late, but only {closed_ms} was closed"
        yield Finding(Kind.LATE, text)
