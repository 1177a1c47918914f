"""Checks of tentative topics: each id is settled once, and done marks are last. Pure.

They are for a run after which all results up to a promise are published. No fork of an owner that
was fenced may have published meanwhile: nothing settles what it has written after its successor has
read the topic, and readers ignore it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from brokers.records import KafkaRecord
from pipeline.ids import Millis, TopicId
from pipeline.lanes.result_headers import RESULT_ID, WRITTEN_TO
from pipeline.tentative.generation import Generation
from pipeline.tentative.records import (
    DoneMark,
    TentativeRecord,
    TentativeResult,
    Undo,
    Unread,
    decode,
)
from pipeline.tentative.view import Event, OnDone, OnStable, OnTentative, OnUndo, View
from tests.faults.history import Finding, Kind, Place, place_of, words

Placed = tuple[Place, TentativeRecord]


@dataclass(frozen=True, slots=True)
class Tentative:
    """The topics of an output that may have tentative results.

    Args:
        records: of the tentative topic.
        partitions: of that topic.
        stable: records of the output.
        promised_ms: all stable results up to this event time are there.
    """

    records: Sequence[KafkaRecord]
    partitions: Collection[int]
    stable: Sequence[KafkaRecord]
    promised_ms: Millis


def check_tentative(found: Tentative) -> Iterator[Finding]:
    """All checks of a tentative topic."""
    placed, unread = _decoded(found)
    yield from unread
    yield from _settled(found, placed)
    yield from _done(found, placed)
    yield from _seen_by_readers(found, placed)


def count_results(records: Iterable[KafkaRecord]) -> int:
    """The number of tentative results of a topic."""
    return sum(record.value is not None for record in records)


def _decoded(found: Tentative) -> tuple[list[Placed], list[Finding]]:
    written = {dict(record.headers).get(WRITTEN_TO) for record in found.stable}
    names = sorted(one.decode() for one in written if one is not None)
    own = TopicId(names[0] if names else "")
    placed, unread = list[Placed](), list[Finding]()
    for record in found.records:
        one, place = decode(record, own), place_of(record)
        if isinstance(one, Unread):
            unread.append(Finding(Kind.UNSETTLED, f"{place}: nobody reads it: {one.value}"))
        else:
            placed.append((place, one))
    return placed, unread


def _stable_ids(found: Tentative) -> set[bytes]:
    ids = (dict(record.headers).get(RESULT_ID) for record in found.stable)
    return {one for one in ids if one is not None}


def _settled(found: Tentative, placed: Iterable[Placed]) -> Iterator[Finding]:
    """Each id is stable, or undone once behind its last result, and never both."""
    stable = _stable_ids(found)
    results: defaultdict[bytes, list[Placed]] = defaultdict(list)
    undos: defaultdict[bytes, list[Place]] = defaultdict(list)
    for place, record in placed:
        if isinstance(record, TentativeResult):
            results[record.id].append((place, record))
        elif isinstance(record, Undo):
            undos[record.id].append(place)
    for name, those in results.items():
        undone, where = undos[name], words(place for place, _ in those)
        if name in stable and undone:
            yield Finding(Kind.SETTLED_TWICE, f"{where}: undone at {words(undone)}, and stable")
        elif len(undone) > 1:
            yield Finding(Kind.SETTLED_TWICE, f"{where}: undone at {words(undone)}")
        elif name not in stable and not undone and _time(those) <= found.promised_ms:
            yield Finding(Kind.UNSETTLED, f"{where}: neither stable nor undone")
        for place, _ in those:
            if any(one.partition == place.partition and one < place for one in undone):
                yield Finding(Kind.SETTLED_TWICE, f"{place}: it comes after its undo")


def _time(placed: Iterable[Placed]) -> int:
    times = (one.timestamp_ms for _, one in placed if isinstance(one, TentativeResult | Undo))
    return max(times, default=0)


def _done(found: Tentative, placed: Iterable[Placed]) -> Iterator[Finding]:
    """Each generation has a done mark in each partition, behind all of its records there."""
    of: defaultdict[Generation, list[Placed]] = defaultdict(list)
    for place, record in placed:
        of[record.generation].append((place, record))
    for generation, those in sorted(of.items()):
        marks = [(place, one) for place, one in those if isinstance(one, DoneMark)]
        others = [(place, one) for place, one in those if not isinstance(one, DoneMark)]
        last_ms = _time(others)
        lacking = set(found.partitions) - {place.partition for place, _ in marks}
        if lacking and last_ms <= found.promised_ms:
            where = words(sorted(lacking))
            yield Finding(Kind.DONE, f"generation {generation} has no done mark in {where}")
        for place, mark in marks:
            if mark.promised_ms < last_ms:
                yield Finding(Kind.DONE, f"{place}: it promises less than {generation} contains")
            later = [at for at, _ in others if at.partition == place.partition and at > place]
            if later:
                yield Finding(Kind.DONE, f"{words(later)}: behind the done mark of {generation}")


def _seen_by_readers(found: Tentative, placed: Sequence[Placed]) -> Iterator[Finding]:
    """A reader is left with nothing open, in whichever order it reads the two topics."""
    for tentative_first in (True, False):
        view = View()
        tentative = (event for _, one in placed for event in view.tentative(one))
        stable = (event for one in found.stable for event in _read(view, one))
        first, second = (tentative, stable) if tentative_first else (stable, tentative)
        seen = [*chain(first, second), *view.promised(found.promised_ms)]
        order = "tentative" if tentative_first else "stable"
        yield from _left(seen, f"a reader of {order} results first", found.promised_ms)


def _read(view: View, record: KafkaRecord) -> tuple[Event, ...]:
    name = dict(record.headers).get(RESULT_ID)
    return view.stable(name, record.value, Millis(record.timestamp_ms))


def _left(seen: Iterable[Event], reader: str, promised_ms: Millis) -> Iterator[Finding]:
    open_ms: dict[bytes, int] = {}
    done: set[Generation] = set()
    for event in seen:
        match event:
            case OnTentative(result=result):
                open_ms[result.id] = result.timestamp_ms
            case OnStable(id=name) if name is not None:
                open_ms.pop(name, None)
            case OnUndo(undo=undo):
                if open_ms.pop(undo.id, None) is None:
                    yield Finding(Kind.SETTLED_TWICE, f"{reader} is told to undo {undo.id!r} again")
            case OnDone(generation=generation):
                if generation in done:
                    yield Finding(Kind.DONE, f"{reader} is told twice that {generation} is done")
                done.add(generation)
    left = sum(at_ms <= promised_ms for at_ms in open_ms.values())
    if left:
        yield Finding(Kind.UNSETTLED, f"{reader} is left with {left} results")
