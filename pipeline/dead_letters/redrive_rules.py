"""Which dead letters are sent again, each of them once, and how. Pure.

The redrive topic itself is what is known of that: each record in it names its dead letter, and a
run first fences every earlier one, then reads what there is, then sends what is missing, in
transactions. So a run that is killed leaves whole transactions behind, and the next one goes on.

A record keeps its Kafka timestamp, by which Kafka counts retention. So what is about to reach the
retention of the redrive topic is not sent: the lane might not come to see it, and nobody would
remember that it was sent.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from brokers.records import Headers, KafkaRecord, bytes_of
from pipeline.dead_letters.letter import UNKNOWN, Identity, Letter, Place, told_place
from pipeline.formats import WRITTEN
from pipeline.ids import Millis, Offset, SchemaHandle, SourceId, TopicName
from pipeline.lanes.dead_letters import (
    ATTEMPT,
    HELD,
    HELD_BY,
    LATE,
    PARTLY_LATE,
    PREFIX,
    REDRIVEN_FROM,
    REDRIVEN_ORIGIN,
)
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import MarkedSource
from pipeline.planner.plan import Fragment

SCHEMA_NOT_FOUND = "schema_not_found"
MARGIN_MS = 3_600_000
"""How long before the end of its retention a record is no longer sent, at most."""

_BATCH_BYTES = 128
"""What Kafka adds to a record that is alone in its batch, its numbers at their longest."""
_FIELD_BYTES = 10
"""The lengths that it writes before a name and a value."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides whether a letter can be sent again.

    Args:
        reads: the sources that the fragment has, and their ports; a record for others is ignored.
        kept_from_ms: older records are about to be removed by retention; None: there is no limit.
        has_schema: whether the registry has a schema now.
        decided: digest of what decides what the table of an as-of join says; empty: it has none.
        redrive: the name of the redrive topic.
        most_bytes: how large a record may be there; None: that is not known.
    """

    reads: AbstractSet[tuple[SourceId, str]]
    kept_from_ms: Millis | None
    has_schema: Callable[[SchemaHandle], bool]
    decided: str = ""
    redrive: str = ""
    most_bytes: int | None = None

    def wants_original(self, letter: Letter) -> bool:
        """Whether a letter can be sent again if the record is still there that it names."""
        return letter.row is not None and not self._refused(letter)

    def obstacle(self, letter: Letter) -> str:
        """Why a letter is not sent again; empty when it can be.

        One that names a record has been looked for by now.
        """
        if why := self._refused(letter):
            return why
        if letter.row is not None and letter.original is None:
            return "the record of the left row is not in its topic any more"
        if self.most_bytes is not None and size_again(letter) > self.most_bytes:
            return "they are larger than the redrive topic takes: raise its max.message.bytes"
        if self.kept_from_ms is not None and letter.again_ms < self.kept_from_ms:
            return "their timestamps have reached the retention of the redrive topic"
        if letter.reason == SCHEMA_NOT_FOUND:
            there = letter.schema is not None and self.has_schema(letter.schema)
            return "" if there else "the registry still has no such schema"
        return ""

    def _refused(self, letter: Letter) -> str:
        """The same, as far as the letter alone says it."""
        other = letter.row is not None and letter.held_by != self.decided
        elsewhere = letter.row is not None and self._is_elsewhere(letter, letter.row)
        for holds, why in (
            (letter.reason == UNKNOWN, "no fragment wrote it"),
            (
                letter.place is None,
                "no single record stands for a failed result: only a replay helps",
            ),
            (letter.reason == LATE, "late: what they belong to is closed, only a replay helps"),
            (letter.reason == PARTLY_LATE, "partly late: they count already in what was open"),
            (
                (letter.source, letter.port) not in self.reads,
                "the fragment begins anew, or does not read that input any more on that side",
            ),
            (elsewhere, "they name a record of a topic that is not that of their input"),
            (other, "the as-of join would decide otherwise by now: only a replay helps"),
        ):
            if holds:
                return why
        return ""

    def _is_elsewhere(self, letter: Letter, row: Place) -> bool:
        """Whether a record is in a topic that the lane does not read it from."""
        carrying = letter.source.rpartition("/")[0]
        return row.topic != self.redrive and letter.topic_id != carrying


def reads(fragment: Fragment, sources: Iterable[MarkedSource]) -> frozenset[tuple[SourceId, str]]:
    """The sources of a fragment, each with the ways on which it comes in, and "" for all.

    `sources`: as its commit marker names them; none if it has never run, or begins anew.
    """
    return frozenset(
        (source.id, at)
        for source in sources
        for way in fragment.ways
        if way.source == source.name
        for at in ("", way.name)
    )


def read_partitions(marker: CommitMarker | None, topic: TopicName, count: int) -> Sequence[int]:
    """Which partitions of a redrive topic the lane reads now.

    One that the topic got since the lane has started is read from its next start on.

    Args:
        marker: the fragment's last one; None: it has never run.
        topic: the redrive topic.
        count: how many partitions it has.
    """
    read = {at.partition for at in marker.end if at.topic == topic} if marker else set()
    return sorted(read) or range(count)


def kept_from(retention_ms: int, now_ms: Millis) -> Millis | None:
    """From which timestamp on a topic surely keeps records; negative retention: for ever."""
    if retention_ms < 0:
        return None
    return Millis(now_ms - retention_ms + min(MARGIN_MS, retention_ms // 10))


def sent_letters(redriven: Iterable[KafkaRecord]) -> frozenset[Identity]:
    """Which dead letters the records of a redrive topic stand for."""
    return frozenset(n for record in redriven if (n := _letter_in(record.headers)) is not None)


def headers_again(letter: Letter) -> Headers:
    """The original's own headers, then what routes it and tells where it comes from."""
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


def size_again(letter: Letter) -> int:
    """How many bytes a letter has when it is sent again, in a batch of its own, at most."""
    record, headers = letter.again, headers_again(letter)
    body = len(record.key or b"") + len(record.value or b"") + bytes_of(headers)
    return body + _BATCH_BYTES + _FIELD_BYTES * (1 + len(headers))


@dataclass
class Tally:
    """What became of the letters that were asked for.

    Args:
        sent: how many are sent, or would be.
        late: of those, how many would be late by now.
        untimed: of those, of how many that cannot be said.
        already: how many were sent before.
        refused: how many are not sent, by the reason.
    """

    sent: int = 0
    late: int = 0
    untimed: int = 0
    already: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def refusals(self) -> Mapping[str, int]:
        """How many were refused for which reason, most first."""
        return dict(self.refused.most_common())


def chosen(
    letters: Iterable[Letter],
    sent: AbstractSet[Identity],
    rules: Rules,
    limit: int | None,
    tally: Tally,
    late: Callable[[Letter], bool | None] = lambda _: False,
) -> Iterator[Letter]:
    """The letters to be sent now, at most `limit`; the tally says what becomes of all of them.

    `late`: whether one would be late; None: that cannot be said.
    """
    for letter in letters:
        if letter.identity in sent:
            tally.already += 1
        elif why_not := rules.obstacle(letter):
            tally.refused[why_not] += 1
        elif limit is None or tally.sent < limit:
            tally.sent += 1
            foreseen = late(letter)
            tally.late += foreseen is True
            tally.untimed += foreseen is None
            yield letter


def _letter_in(headers: Headers) -> Identity | None:
    """The last of such headers count: they were written by us, behind the original's."""
    partition, _, offset = _last(headers, REDRIVEN_FROM).partition("/")
    if not (partition.isdecimal() and offset.isdecimal()):
        return None
    return int(partition), Offset(int(offset)), told_place(_last(headers, REDRIVEN_ORIGIN))


def _last(headers: Headers, wanted: str) -> str:
    told = next((value for name, value in reversed(headers) if name == wanted), None)
    return (told or b"").decode(errors="replace")
