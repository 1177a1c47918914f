"""All checks over the history of one network. Pure."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from brokers.records import KafkaRecord
from pipeline.ids import FragmentName, TopicName
from pipeline.lanes.dead_letter_reasons import LATENESS
from pipeline.lanes.result_headers import LATE_RESULT
from pipeline.markers.codec import decode_boundary, decode_marker
from pipeline.markers.signals import is_activity
from pipeline.names import is_redrive
from tests.faults.case import Case
from tests.faults.history import Finding, Kind, Letter, Place, Row, Seen, Sent, Value, place_of
from tests.faults.lanes import (
    Boundary,
    Marker,
    check_epochs,
    check_markers,
    check_promises,
    check_totals,
)
from tests.faults.letters import Accepted, Derived, check_inputs, check_letters, letter_of
from tests.faults.reads import Reads, check_reads, check_writers
from tests.faults.segments import Log
from tests.faults.tentative import Tentative, check_tentative, count_results
from tests.faults.values import check_order, check_values, counts

Decode = Callable[[KafkaRecord], Mapping[str, Any]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FragmentTopics:
    """The topics that a fragment writes, and those of external streams that it reads."""

    name: FragmentName
    output: TopicName
    boundaries: TopicName
    dead_letters: TopicName
    markers: TopicName
    reads: frozenset[TopicName]
    tentative: TopicName | None = None
    """Of its tentative results; None: it never has any."""

    @property
    def guarded(self) -> tuple[TopicName, ...]:
        """Topics that are written in the lane's transactions."""
        return (self.output, self.dead_letters, self.markers)

    @property
    def all(self) -> tuple[TopicName, ...]:
        """Every topic that this fragment and its agent write."""
        tentative = () if self.tentative is None else (self.tentative,)
        return (*self.guarded, self.boundaries, *tentative)


@dataclass(frozen=True, slots=True)
class History:
    """The recorded history of one network; `reads` contains its inputs and all that it wrote.

    `grown`: how often partitions were added to topics.
    """

    sent: tuple[Sent, ...]
    fragments: tuple[FragmentTopics, ...]
    reads: Reads
    grown: Mapping[TopicName, int] = field(default_factory=dict)

    def records(self, topic: TopicName) -> tuple[KafkaRecord, ...]:
        """The committed records of a topic, in the order of their offsets.

        Of a compacted topic also those that were observed before their compaction.
        """
        found = {place_of(r): r for r in self.reads.committed if r.topic == topic}
        if topic in self.reads.compacted:
            for record in self.reads.observed:
                if record.topic == topic:
                    found.setdefault(place_of(record), record)
        return tuple(found[place] for place in sorted(found))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of the checks of a history.

    Args:
        network: its name.
        sent: records sent.
        refused: dead letters.
        late: those of late and partly late records.
        expected: expected records over all outputs.
        aborted: records of aborted transactions: a sign that a fault had an effect.
        tentative: tentative results.
    """

    network: str
    sent: int
    refused: int
    late: int
    expected: int
    aborted: int
    findings: tuple[Finding, ...]
    tentative: int = 0

    def __str__(self) -> str:
        return (
            f"{self.network}: {self.sent} sent, {self.refused} dead letters ({self.late} late), "
            f"{self.expected} results expected, {self.tentative} tentative, {self.aborted} records "
            "aborted: " + (f"{len(self.findings)} findings" if self.findings else "exact")
        )

    def words(self, most: int = 3) -> str:
        """The first few findings of each kind as text."""
        lines = [f"  {self.network}: {len(self.findings)} findings"]
        for kind, count in counts(self.findings).items():
            texts = [str(finding) for finding in self.findings if finding.kind is kind]
            lines += [f"    {one}" for one in texts[:most]]
            lines += [f"    … and {count - most} more of this kind"] if count > most else []
        return "\n".join(lines)


def judge(case: Case, network: str, history: History, decode: Decode) -> Verdict:
    """Compare a history with the reference, and with the guarantees of streams and lanes."""
    letters = tuple(
        letter_of(fragment.name, record)
        for fragment in history.fragments
        for record in history.records(fragment.dead_letters)
    )
    marked = _marked_late(history)
    findings = [
        *_inputs(history),
        *check_letters(history.sent, letters, {f.name: f.reads for f in history.fragments}, marked),
        *check_reads(history.reads),
    ]
    findings += check_lanes(history)
    late = {f.name: tuple(_too_late(f.name, letters, marked, decode)) for f in history.fragments}
    own = {topic: f.name for f in history.fragments for topic in f.reads if is_redrive(topic)}
    results = case.reference(Accepted(history.sent, letters, late, own))
    topics = {fragment.name: fragment.output for fragment in history.fragments}
    count = 0
    for box, columns in case.columns.items():
        topic = topics[FragmentName(box)]
        expected = list(results[box])
        count += len(expected)
        seen = seen_in(topic, columns.names, history, decode)
        findings += check_values(topic, columns, expected, seen)
        findings += check_order(columns, expected, seen, grown=history.grown.get(topic, 0))
    aborted = len(history.reads.uncommitted) - len(history.reads.committed)
    return Verdict(
        network=network,
        sent=len(history.sent),
        refused=len(letters),
        late=sum(letter.reason in LATENESS for letter in letters),
        expected=count,
        aborted=aborted,
        findings=tuple(findings),
        tentative=sum(
            count_results(history.records(fragment.tentative))
            for fragment in history.fragments
            if fragment.tentative is not None
        ),
    )


def _too_late(
    fragment: FragmentName,
    letters: Iterable[Letter],
    marked: Mapping[Place, KafkaRecord],
    decode: Decode,
) -> Iterator[Derived]:
    """The results of other fragments that a fragment has refused as late."""
    for letter in letters:
        record = marked.get(letter.origin) if letter.origin is not None else None
        if record is not None and letter.fragment == fragment and letter.reason in LATENESS:
            yield decode(record), int(record.timestamp_ms)


def _marked_late(history: History) -> Mapping[Place, KafkaRecord]:
    """The results that fragments have marked as late."""
    return {
        place_of(record): record
        for fragment in history.fragments
        for record in history.records(fragment.output)
        if dict(record.headers).get(LATE_RESULT) is not None
    }


def row_of(names: Iterable[str], fields: Mapping[str, Any]) -> Row:
    """The values of a record in the order of some columns; instants as ms."""
    return tuple(_plain(fields[name]) for name in names)


def check_lanes(history: History) -> tuple[Finding, ...]:
    """Check the guarantees of lanes, agents and markers, which hold for every network."""
    return tuple(
        finding for fragment in history.fragments for finding in _fragment(fragment, history)
    )


def check_settled(history: History) -> tuple[Finding, ...]:
    """Check that tentative results are settled, as readers may expect."""
    return tuple(one for fragment in history.fragments for one in _tentative(fragment, history))


def seen_in(
    topic: TopicName, names: tuple[str, ...], history: History, decode: Decode
) -> list[Seen]:
    """The committed records of an output, decoded."""
    return [_seen(names, record, decode) for record in history.records(topic)]


def _inputs(history: History) -> Iterator[Finding]:
    topics = {topic for fragment in history.fragments for topic in fragment.reads}
    standing = [record for topic in sorted(topics) for record in history.records(topic)]
    yield from check_inputs(history.sent, standing)


def _fragment(fragment: FragmentTopics, history: History) -> Iterator[Finding]:
    logs = history.reads.logs
    yield from check_writers([log for log in logs if log.topic in fragment.guarded], guarded=True)
    published = [log for log in logs if log.topic == fragment.boundaries]
    yield from check_writers(without_agents(published, agents(history.reads)), guarded=False)
    markers = _markers(history.records(fragment.markers))
    boundaries = _boundaries(history.records(fragment.boundaries))
    output = history.records(fragment.output)
    if not markers:
        yield Finding(Kind.MARKER, f"topic {fragment.markers} holds no marker")
    yield from check_markers(markers)
    yield from check_totals(markers, output, history.records(fragment.dead_letters))
    yield from check_promises(output, boundaries)
    yield from check_epochs(boundaries)
    yield from _tentative(fragment, history)


def _tentative(fragment: FragmentTopics, history: History) -> Iterator[Finding]:
    topic = fragment.tentative
    promises = [one.boundary_ms for _, one in _boundaries(history.records(fragment.boundaries))]
    if topic is None or not promises:
        return
    yield from check_tentative(
        Tentative(
            records=history.records(topic),
            partitions={log.partition for log in history.reads.logs if log.topic == topic},
            stable=history.records(fragment.output),
            promised_ms=max(promises),
        )
    )


def agents(reads: Reads) -> frozenset[int]:
    """The producers of agents: those that wrote an activity record, in any topic of boundaries.

    Each agent has one. A record counts that was read in the run, and was compacted away since.
    """
    records = (*reads.observed, *reads.committed, *reads.uncommitted)
    activity = {place_of(record) for record in records if is_activity(record.key)}
    topics = {place.topic for place in activity}
    return frozenset(
        batch.producer
        for log in reads.logs
        if log.topic in topics
        for batch in log.batches
        if any(log.place(offset) in activity for offset in range(batch.first, batch.last + 1))
    )


def without_agents(boundaries: Iterable[Log], agents: Container[int]) -> Iterator[Log]:
    """The boundaries of lanes, without the activity records of agents in the same topic."""
    for log in boundaries:
        lanes = tuple(batch for batch in log.batches if batch.producer not in agents)
        yield replace(log, batches=lanes)


def _markers(records: Iterable[KafkaRecord]) -> list[Marker]:
    return [
        (place_of(record), decode_marker(record.value, str(place_of(record))))
        for record in records
        if record.value is not None
    ]


def _boundaries(records: Iterable[KafkaRecord]) -> list[Boundary]:
    return [
        (place_of(record), decode_boundary(record.value, str(place_of(record))))
        for record in records
        if record.value is not None and not is_activity(record.key)
    ]


def _seen(names: tuple[str, ...], record: KafkaRecord, decode: Decode) -> Seen:
    fields = decode(record)
    if set(fields) != set(names):
        # Never equal to an expected row, so that it is reported as unexpected.
        names = tuple(sorted(fields))
    return Seen(place_of(record), row_of(names, fields), record.timestamp_ms)


def _plain(value: Any) -> Value:
    """Instants become ms since 1970 UTC, with a fraction where they have one."""
    if isinstance(value, datetime):
        micros = (value - _EPOCH) // timedelta(microseconds=1)
        return micros // 1_000 if micros % 1_000 == 0 else micros / 1_000
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return repr(value)
