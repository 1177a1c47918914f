"""Redrive rules: which dead letters are sent again, exactly once, and with which headers. Pure.

The redrive topic is the log of what was sent: a header of each record identifies its dead letter. A
run fences all earlier runs, reads the topic, then sends what is missing, in transactions. So a
killed run leaves only whole transactions, and the next run continues after them.

A record keeps its Kafka timestamp, by which Kafka computes retention. So a record that is about to
reach the retention of the redrive topic is not sent: it might be deleted before the lane reads it,
and with it the evidence that it was sent.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from brokers.records import Headers, KafkaRecord, bytes_of
from pipeline.dead_letters.letter import UNKNOWN, Identity, Letter, Place, parse_place
from pipeline.formats import WRITTEN
from pipeline.ids import Millis, Offset, SchemaHandle, SourceId, TopicName
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.lanes.dead_letters import (
    ATTEMPT,
    HELD,
    HELD_BY,
    PREFIX,
    REDRIVEN_FROM,
    REDRIVEN_ORIGIN,
)
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import MarkedSource
from pipeline.planner.plan import Fragment

SCHEMA_NOT_FOUND = "schema_not_found"
MARGIN_MS = 3_600_000
"""Largest margin: a record is no longer sent when its retention ends within it."""

_BATCH_BYTES = 128
"""Overhead of a batch of one record, with varints of maximum length."""
_FIELD_BYTES = 10
"""The length prefixes of a name and a value."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Conditions under which a dead letter can be sent again.

    Args:
        paths: source ids and path names of the fragment; the lane ignores records for others.
        kept_from_ms: retention is about to delete older records; None: it is unlimited.
        has_schema: whether the registry has a schema now.
        decided: digest of the settings that decide the matches of an as-of join, else empty.
        redrive: the name of the redrive topic.
        most_bytes: the largest record that it accepts; None: unknown.
    """

    paths: AbstractSet[tuple[SourceId, str]]
    kept_from_ms: Millis | None
    has_schema: Callable[[SchemaHandle], bool]
    decided: str = ""
    redrive: str = ""
    most_bytes: int | None = None

    def needs_original(self, letter: Letter) -> bool:
        """Whether a redrive sends the record at `row`, if that still exists."""
        return letter.row is not None and not self._own_obstacle(letter)

    def obstacle(self, letter: Letter) -> str:
        """Why a dead letter is not sent again; empty if it can be.

        Its original, if it needs one, has been read before.
        """
        if why := self._own_obstacle(letter):
            return why
        if letter.row is not None and letter.original is None:
            return "the record of the left row is not in its topic any more"
        if self.most_bytes is not None and redrive_size(letter) > self.most_bytes:
            return "they are larger than the redrive topic takes: raise its max.message.bytes"
        if self.kept_from_ms is not None and letter.redrive_timestamp_ms < self.kept_from_ms:
            return "their timestamps have reached the retention of the redrive topic"
        if letter.reason == SCHEMA_NOT_FOUND:
            there = letter.schema is not None and self.has_schema(letter.schema)
            return "" if there else "the registry still has no such schema"
        return ""

    def _own_obstacle(self, letter: Letter) -> str:
        """Obstacle by the headers of the dead letter alone; empty: none."""
        other = letter.row is not None and letter.held_by != self.decided
        elsewhere = letter.row is not None and self._is_elsewhere(letter, letter.row)
        for holds, why in (
            (letter.reason == UNKNOWN, "no fragment wrote it"),
            (
                letter.place is None,
                "no single record stands for a failed result: only a replay helps",
            ),
            (
                letter.reason == Reason.LATE.value,
                "late: what they belong to is closed, only a replay helps",
            ),
            (
                letter.reason == Reason.PARTLY_LATE.value,
                "partly late: they count already in what was open",
            ),
            (
                (letter.source, letter.port) not in self.paths,
                "the fragment begins anew, or does not read that input any more on that side",
            ),
            (elsewhere, "they name a record of a topic that is not that of their input"),
            (other, "the as-of join would decide otherwise by now: only a replay helps"),
        ):
            if holds:
                return why
        return ""

    def _is_elsewhere(self, letter: Letter, row: Place) -> bool:
        """Whether a record is in neither the topic of its source nor the redrive topic."""
        source_topic_id = letter.source.rpartition("/")[0]
        return row.topic != self.redrive and letter.topic_id != source_topic_id


def source_paths(
    fragment: Fragment, sources: Iterable[MarkedSource]
) -> frozenset[tuple[SourceId, str]]:
    """Source ids of a fragment with the names of their paths; "" is all paths of a source.

    `sources`: those in its commit marker; none if it has never run, or begins anew.
    """
    return frozenset(
        (source.id, at)
        for source in sources
        for path in fragment.ways
        if path.source == source.name
        for at in ("", path.name)
    )


def read_partitions(marker: CommitMarker | None, topic: TopicName, count: int) -> Sequence[int]:
    """The partitions of a redrive topic that the running lane reads.

    A partition added since the lane's start is read from its next start on.

    Args:
        marker: the fragment's last one; None: it has never run.
        topic: the redrive topic.
        count: its number of partitions.
    """
    read = {at.partition for at in marker.end if at.topic == topic} if marker else set()
    return sorted(read) or range(count)


def kept_from(retention_ms: int, now_ms: Millis) -> Millis | None:
    """Oldest timestamp that retention will not delete within the margin; None: it is unlimited."""
    if retention_ms < 0:
        return None
    return Millis(now_ms - retention_ms + min(MARGIN_MS, retention_ms // 10))


def sent_letters(redriven: Iterable[KafkaRecord]) -> frozenset[Identity]:
    """Identities of the dead letters that a redrive topic contains."""
    return frozenset(n for record in redriven if (n := _identity(record.headers)) is not None)


def redrive_headers(letter: Letter) -> Headers:
    """Headers of a redriven record: those of the original, then its route and its provenance."""
    partition, offset = letter.number
    ours: list[tuple[str, bytes]] = [
        (f"{PREFIX}format", str(WRITTEN).encode()),
        (f"{PREFIX}source", letter.source.encode()),
        (f"{PREFIX}port", letter.port.encode()),
        (ATTEMPT, str(letter.attempt).encode()),
        (REDRIVEN_FROM, f"{partition}/{offset}".encode()),
    ]
    if letter.first is not None:
        first = letter.first
        origin = f"{first.topic}/{first.partition}/{first.offset}"
        ours.append((REDRIVEN_ORIGIN, origin.encode()))
    if letter.row is not None:
        ours.append((HELD_BY, letter.held_by.encode()))
        ours += [(HELD, letter.held)] if letter.held is not None else []
    return (*letter.original_headers, *ours)


def redrive_size(letter: Letter) -> int:
    """Upper bound of the bytes of a redriven record, in a batch of its own."""
    record, headers = letter.redrive_record, redrive_headers(letter)
    body = len(record.key or b"") + len(record.value or b"") + bytes_of(headers)
    return body + _BATCH_BYTES + _FIELD_BYTES * (1 + len(headers))


@dataclass
class Tally:
    """Counts of the selected dead letters by outcome.

    Args:
        sent: number that are sent, or would be.
        late: of those, the number that would be late now.
        untimed: of those, the number whose lateness is unknown.
        already: number that were sent before.
        refused: numbers that are not sent, by reason.
    """

    sent: int = 0
    late: int = 0
    untimed: int = 0
    already: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def refusals(self) -> Mapping[str, int]:
        """Reason → number refused, largest first."""
        return dict(self.refused.most_common())


def select_unsent(
    letters: Iterable[Letter],
    sent: AbstractSet[Identity],
    rules: Rules,
    limit: int | None,
    tally: Tally,
    late: Callable[[Letter], bool | None] = lambda _: False,
) -> Iterator[Letter]:
    """The dead letters to send now, at most `limit`; counts the outcome of each in the tally.

    `late`: whether one would be late; None: unknown.
    """
    for letter in letters:
        if letter.identity in sent:
            tally.already += 1
        elif why_not := rules.obstacle(letter):
            tally.refused[why_not] += 1
        elif limit is None or tally.sent < limit:
            tally.sent += 1
            would_be_late = late(letter)
            tally.late += would_be_late is True
            tally.untimed += would_be_late is None
            yield letter


def _identity(headers: Headers) -> Identity | None:
    """Identity of the redriven dead letter; None: the headers contain none.

    The last header of a name counts: ours are appended to those of the original.
    """
    partition, _, offset = _last(headers, REDRIVEN_FROM).partition("/")
    if not (partition.isdecimal() and offset.isdecimal()):
        return None
    return int(partition), Offset(int(offset)), parse_place(_last(headers, REDRIVEN_ORIGIN))


def _last(headers: Headers, key: str) -> str:
    found = next((value for name, value in reversed(headers) if name == key), None)
    return (found or b"").decode(errors="replace")
