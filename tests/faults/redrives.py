"""Redrives of dead letters while records flow, and their copies in a history.

Most dead letters are refused again. So some records are sent by a schema that is registered later:
a redrive after that brings them into the state.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from brokers.records import KafkaRecord
from pipeline.errors import ExitCode
from pipeline.ids import SchemaId, TopicName
from pipeline.lanes.dead_letters import REDRIVEN_FROM, REDRIVEN_ORIGIN
from pipeline.names import is_redrive
from pipeline.planner.plan import Fragment
from schemas import wire
from tests.faults.case import Case, Fed
from tests.faults.history import Fate, Finding, Kind, Place, Sent, place_of
from tests.faults.judge import Decode, History, row_of
from tests.faults.world import RunFailedError, World

COMING_SHARE = 0.02
AHEAD_MAX_MS = 30_000
"""Event times of records whose schema comes later, after those of others: with the time until their
redrive some are late then, and most are not."""
ON_THEIR_WAY_S = 2.0
"""Records that were produced before are in the topic after this time."""
PROBED = [{"name": "number", "type": "int"}]
AT_ONCE = 200
"""Most dead letters of one redrive: those that are refused again would become ever more."""


@dataclass
class Coming:
    """The schemas that are registered later: network and stream → the id; absent: none now."""

    ids: dict[tuple[str, str], SchemaId] = field(default_factory=dict)
    revived: set[SchemaId] = field(default_factory=set)
    """Those that were registered since."""

    def of(self, case: Case, network: str) -> Case:
        """A case that sends some records by such schemas; they are refused."""

        def feed(random: Random, start_ms: int) -> Iterator[Fed]:
            own = Random(random.random())
            for fed in case.feed(random, start_ms):
                schema, at_ms = self.ids.get((network, fed.stream)), case.event_ms(fed)
                is_plain = fed.fate is Fate.GOOD and not (fed.older or fed.clock_ms or fed.spoil)
                if schema is None or at_ms is None or not is_plain or own.random() >= COMING_SHARE:
                    yield fed
                    continue
                event_time = case.stream(fed.stream).event_time
                fields = {**fed.fields, event_time: at_ms + own.randrange(AHEAD_MAX_MS)}
                spoil = partial(_by_schema, schema)
                yield replace(fed, fields=fields, fate=Fate.BAD, spoil=spoil)

        return replace(case, feed=feed, settle_ms=case.settle_ms + AHEAD_MAX_MS)


def _by_schema(schema: SchemaId, value: bytes) -> bytes:
    framed = wire.split(value)
    assert isinstance(framed, wire.Framed)
    return wire.join(schema, framed.body)


def one_round(
    world: World,
    coming: Coming,
    cases: Mapping[str, Case],
    lasts_s: float,
    await_read: Callable[[], None],
) -> int:
    """Send records by schemas that are registered at the end, and redrive; returns how many.

    Args:
        world: with the networks.
        coming: tells feeds what to send.
        cases: of the networks.
        lasts_s: how long such records are sent.
        await_read: waits until owners and followers have read all that stands in the inputs: a
            follower that repeats a batch after the schema has come would judge it otherwise.

    Raises:
        RunFailedError: the ids of schemas are not assigned in order, or a command failed.
    """
    wanted = [(name, stream.name) for name, case in cases.items() for stream in case.streams]
    probe = {"type": "record", "name": "Probe", "fields": PROBED, "doc": f"{time.time_ns()}"}
    last = world.registry.register("faults-probe-value", json.dumps(probe))
    coming.ids = {one: SchemaId(last + 1 + number) for number, one in enumerate(wanted)}
    ids = dict(coming.ids)
    time.sleep(lasts_s)
    coming.ids = {}
    time.sleep(ON_THEIR_WAY_S)
    await_read()
    for (network, stream), schema_id in ids.items():
        case = cases[network]
        schema = {**case.stream(stream).schema, "doc": f"Number {schema_id}."}
        subject = f"{case.topic(network, stream)}-value"
        if world.registry.register(subject, json.dumps(schema)) != schema_id:
            raise RunFailedError(f"the schema of {subject} has another id than {schema_id}")
        coming.revived.add(schema_id)
    return sum(_redrive(world, f) for one in world.networks for f in one.plan.fragments)


def _redrive(world: World, fragment: Fragment) -> int:
    """Redrive dead letters of a fragment; returns how many."""
    name = f"{fragment.names.network.name}.{fragment.name}"
    arguments = ("dlq", "redrive", name, "--yes", f"--limit={AT_ONCE}", "--output=json")
    # The data code: every one of them is refused, such as late ones.
    text = world.medusa(*arguments, fine=(ExitCode.DONE, ExitCode.BAD_INPUT))
    return int(json.loads(text).get("sent", 0)) if text.strip() else 0


def with_copies(
    history: History, coming: Coming, decode: Decode
) -> tuple[History, tuple[Finding, ...]]:
    """A history whose sent records include the copies in redrive topics; and what is wrong in them.

    Args:
        history: as it was read.
        coming: whose schemas were registered.
        decode: of values.
    """
    originals = {record.place: record for record in history.sent}
    copies, found = list[Sent](), list[Finding]()
    for topic in sorted({t for f in history.fragments for t in f.reads if is_redrive(t)}):
        records = history.records(topic)
        found += _repeated(records)
        for record in records:
            original = originals.get(origin_of(record))
            if original is None:
                text = f"{place_of(record)} is a copy of no record that was sent"
                found.append(Finding(Kind.UNEXPECTED, text))
                continue
            stands = (original.key, original.value, original.timestamp_ms)
            if stands != (record.key, record.value, record.timestamp_ms):
                text = f"{place_of(record)} is not what stands at {original.place}"
                found.append(Finding(Kind.DIFFERENT, text))
            copies.append(_copy(original, record, coming, decode))
    return replace(history, sent=(*history.sent, *copies)), tuple(found)


def origin_of(record: KafkaRecord) -> Place:
    """The first place of a redriven record, by its header."""
    value = dict(record.headers).get(REDRIVEN_ORIGIN) or b"/-1/-1"
    topic, partition, offset = value.decode().rsplit("/", 2)
    return Place(TopicName(topic), int(partition), int(offset))


def _repeated(records: Sequence[KafkaRecord]) -> Iterator[Finding]:
    """Dead letters that were redriven twice."""
    seen: dict[bytes | None, Place] = {}
    for record in records:
        letter = dict(record.headers).get(REDRIVEN_FROM)
        before = seen.setdefault(letter, place_of(record))
        if before != place_of(record):
            which = (letter or b"?").decode()
            text = f"{place_of(record)} redrives dead letter {which} like {before}"
            yield Finding(Kind.DUPLICATED, text)


def _copy(original: Sent, record: KafkaRecord, coming: Coming, decode: Decode) -> Sent:
    """A redriven record as one that was sent; one whose schema has come may be late by now."""
    copy = replace(original, place=place_of(record))
    framed = wire.split(record.value)
    if not isinstance(framed, wire.Framed) or framed.schema not in coming.revived:
        return copy
    fields = decode(record)
    names = tuple(fields)
    values = dict(zip(names, row_of(names, fields), strict=True))
    return replace(copy, fate=Fate.MAYBE_LATE, fields=values)
