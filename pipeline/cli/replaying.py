"""What a replay asks the catalog and Kafka before it does anything, and where it would write."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from brokers.records import NewTopicSpec
from pipeline.cli.connections import Connections
from pipeline.cli.letters import ends_of, label, letters_of
from pipeline.cli.positions import first_time, last_marker
from pipeline.cli.streams import deployed_plans
from pipeline.cli.times import parse_time
from pipeline.errors import RefusedError, UsageError
from pipeline.ids import Millis, NetworkVersion, Offset, TopicName
from pipeline.lanes.dead_letters import LATENESS
from pipeline.markers.positions import InputPartition
from pipeline.names import INTERNAL_SUFFIXES, replay_topic
from pipeline.network.boxes.shape import reach_ms
from pipeline.network.model import ExternalStream
from pipeline.planner.plan import Fragment, FragmentInput, Plan
from pipeline.replay.period import Asked, Period, period
from pipeline.replay.ranges import Kept, Range, may_lack, ranges, timestamps_from

EventTimeOf = Callable[[InputPartition, Offset], Millis]
"""The event time of one record of an external stream; only Spark can tell."""
_NUMBERS = 64
_NUMBERS_MAX = 1024


@dataclass(frozen=True, slots=True)
class Subject:
    """What is replayed: a fragment as the deployed version of its network has it."""

    fragment: Fragment
    plan: Plan
    version: NetworkVersion
    topic_ids: Mapping[TopicName, str]

    @property
    def place(self) -> str:
        """For errors."""
        return f"fragment {label(self.fragment)}"


@dataclass(frozen=True, slots=True)
class Reads:
    """What is read for a replay.

    Args:
        since: per range the Kafka timestamp of its first record; None: it holds none.
        late: how many records in it are dead letters for having come late; they count now.
        judged_again: how many are dead letters for another reason.
    """

    period: Period
    ranges: tuple[Range, ...]
    since: tuple[Millis | None, ...]
    late: int
    judged_again: int

    @property
    def offsets(self) -> int:
        """How many offsets, at least as many as records."""
        return sum(one.offsets for one in self.ranges)


def subject(name: str, connections: Connections) -> Subject:
    """The fragment that a name means, or the one that computes the box of that name.

    Raises:
        RefusedError: it means none, or several; says what there is.
    """
    plans = deployed_plans(connections)
    every = [(plan, fragment) for plan in plans for fragment in plan.fragments]
    found = [(p, f) for p, f in every if name in {f.names.fragment, label(f)}] or [
        (p, f)
        for p, f in every
        if name in {n for box in f.boxes for n in (box.name, f"{p.network}.{box.name}")}
    ]
    if len(found) != 1:
        there = ", ".join(label(f) for _, f in found or every)
        what = f"{name} means several fragments" if found else f"there is no fragment or box {name}"
        raise RefusedError(what, hint=f"there is: {there}." if there else "no network is deployed.")
    plan, fragment = found[0]
    network = connections.catalog.networks.get(plan.network)
    record = connections.catalog.fragments.get(plan.network, fragment.name)
    ids = record.topic_ids if record else ()
    version = network.version if network else NetworkVersion(0)
    return Subject(fragment, plan, version, dict(ids))


def time_of(
    text: str, fragment: Fragment, now_ms: Millis, connections: Connections, event_time: EventTimeOf
) -> Millis:
    """A time as typed, or the event time of the record at TOPIC/PARTITION/OFFSET.

    Raises:
        UsageError: it is neither.
        RefusedError: there is no such record in the fragment's inputs.
    """
    if "/" not in text:
        return parse_time(text, now_ms)
    stream, at, offset = _record_place(text, fragment)
    starts = connections.topics.start_offsets([at.topic]).get(at.topic, {})
    ends = connections.topics.end_offsets([at.topic]).get(at.topic, {})
    start, end = starts.get(at.partition), ends.get(at.partition)
    if start is None or end is None or not start <= offset < end:
        holds = "does not exist" if start is None else f"holds the offsets {start} up to {end}"
        raise RefusedError(
            f"there is no record at offset {offset}: the partition {holds}",
            place=f"topic {at.topic}, partition {at.partition}",
            hint="`medusa offsets show` says what there is.",
        )
    if isinstance(stream, ExternalStream):
        return event_time(at, offset)
    found = first_time(at.topic, at.partition, (offset, end), connections.reader())
    if found is None:
        raise RefusedError(f"there is no committed record at or behind {text}")
    return found


def _record_place(text: str, fragment: Fragment) -> tuple[FragmentInput, InputPartition, Offset]:
    topic, *numbers = text.split("/")
    stream = next((s for s in fragment.inputs if topic in {s.name, s.topic}), None)
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers):  # noqa: PLR2004 - both
        raise UsageError(
            f"{text!r} is neither a time nor a record",
            hint="write 2026-01-31T12:00:00Z, 90s, 5m, 2h or 1d for so long ago, or "
            "TOPIC/PARTITION/OFFSET for the event time of the record there.",
        )
    if stream is None:
        raise RefusedError(
            f"{topic} is no input of {label(fragment)}",
            hint=f"there is: {', '.join(sorted(s.topic for s in fragment.inputs))}.",
        )
    partition, offset = (int(number) for number in numbers)
    return stream, InputPartition(stream.name, stream.topic, partition), Offset(offset)


def asked_period(
    what: Subject, asked: Asked, connections: Connections, *, published: bool = False
) -> Period:
    """The period of what was asked for; `published`: see `period`.

    Raises:
        RefusedError: the fragment has not got that far.
    """
    fragment = what.fragment
    marker = last_marker(fragment.names, connections)
    if marker is None:
        raise RefusedError(
            "the fragment has not run yet, so there is nothing to compute again", place=what.place
        )
    shape = fragment.shape
    return period(shape, asked, marker.boundary_ms, what.place, published=published)


def reads(what: Subject, found: Period, connections: Connections, *, incomplete: bool) -> Reads:
    """Everything that has to be read for a period.

    Raises:
        RefusedError: the inputs no longer reach back so far.
    """
    fragment = what.fragment
    shape = fragment.shape
    kept = [
        one
        for stream in fragment.inputs
        for one in _read_of(stream, found, reach_ms(shape, stream.name), connections)
    ]
    chosen = ranges(kept, incomplete=incomplete)
    reader = connections.reader()
    since = tuple(first_time(r.topic, r.partition, (r.start, r.end), reader) for r in chosen)
    late, again = _letters(fragment, chosen, found, connections)
    return Reads(found, chosen, since, late, again)


def _read_of(
    stream: FragmentInput, found: Period, reach_ms: int, connections: Connections
) -> Iterator[Kept]:
    """What the partitions of a stream hold of what results can be made of."""
    from_ms = Millis(max(found.input_from_ms, found.results_from_ms - reach_ms))
    ahead_ms = stream.ahead_ms if isinstance(stream, ExternalStream) else 0
    for one in kept_of(stream, timestamps_from(stream, from_ms), connections):
        yield replace(one, reach_ms=reach_ms + ahead_ms)


def kept_of(stream: FragmentInput, from_ms: Millis, connections: Connections) -> list[Kept]:
    """What the partitions of a stream hold from a Kafka timestamp on.

    Raises:
        RefusedError: its topic does not exist.
    """
    topic, topics, reader = stream.topic, connections.topics, connections.reader()
    ends = ends_of(topic, connections)
    starts = topics.start_offsets([topic])[topic]
    since = topics.offsets_for_time(topic, from_ms)
    kept = []
    for partition, end in sorted(ends.items()):
        at = InputPartition(stream.name, topic, partition)
        start = starts.get(partition, end)
        one = Kept(at, start, end, min(end, max(start, since.get(partition, end))), None)
        if may_lack(one):
            one = Kept(
                at, start, end, one.since, first_time(topic, partition, (start, end), reader)
            )
        kept.append(one)
    return kept


def _letters(
    fragment: Fragment, chosen: tuple[Range, ...], found: Period, connections: Connections
) -> tuple[int, int]:
    """Late records that count now, and records that are judged again."""
    late = again = 0
    for letter in letters_of(fragment, connections):
        at = letter.at
        if at is None or not any(r.holds(at.topic, at.partition, at.offset) for r in chosen):
            continue
        if letter.reason not in LATENESS:
            again += 1
        elif letter.event_time_ms is not None and found.has_input(letter.event_time_ms):
            late += 1
    return late, again


def target(what: Subject, into: str | None, connections: Connections) -> NewTopicSpec:
    """The topic that a replay goes into, with the partitions and the settings of the output.

    It keeps its records until somebody deletes it: Kafka counts retention from timestamps, and
    those of a replay are old.

    Raises:
        RefusedError: the name is taken.
    """
    output = what.fragment.output.topic
    topic = _unused(output, connections) if into is None else TopicName(into)
    mine = {t.name for plan in deployed_plans(connections) for t in plan.topics}
    if topic in mine or topic.endswith(INTERNAL_SUFFIXES):
        raise RefusedError(
            "the topic belongs to a network, or is named like one that Medusa keeps for itself",
            place=f"topic {topic}",
            hint="a replay goes into a topic of its own: leave `--into` out, or name another one.",
        )
    like = next(t for t in what.plan.topics if t.name == output)
    there = connections.topics.describe([output])
    partitions = there[output].partitions if output in there else like.partitions
    config = {**dict(like.config), "retention.ms": "-1"}
    spec = NewTopicSpec(topic, partitions, like.replication, tuple(sorted(config.items())))
    check_empty(spec, connections)
    return spec


def check_empty(spec: NewTopicSpec, connections: Connections) -> None:
    """That a topic does not exist, or holds nothing, as a run that was cut off leaves it.

    Raises:
        RefusedError: it holds records, or has other partitions.
    """
    there = connections.topics.describe([spec.name]).get(spec.name)
    if there is None:
        return
    problem = ""
    if there.partitions != spec.partitions:
        problem = f"it has {there.partitions} partitions, the output has {spec.partitions}"
    ends = ends_of(spec.name, connections)
    reader = connections.reader()
    reader.assign(connections.topics.start_offsets([spec.name]))
    if next(iter(reader.read_to({spec.name: ends})), None) is not None:
        problem = "it holds records"
    if problem:
        raise RefusedError(
            f"the topic exists already, and {problem}",
            place=f"topic {spec.name}",
            hint="leave `--into` out for a new one, name another one, or delete it.",
        )


def _unused(output: TopicName, connections: Connections) -> TopicName:
    """The first numbered name that no topic has."""
    for first in range(1, _NUMBERS_MAX, _NUMBERS):
        names = [replay_topic(output, number) for number in range(first, first + _NUMBERS)]
        there = connections.topics.describe(names)
        free = next((name for name in names if name not in there), None)
        if free is not None:
            return free
    raise RefusedError(
        f"there are {_NUMBERS_MAX} replays of {output}", hint="name a topic with `--into`."
    )
