"""Rebuild of a lane's state from the log: planned batches that publish nothing.

They read from the oldest positions that the state needs, or from those of an older checkpoint,
exactly up to the last commit marker, leave out the records that were left out before, and the last
one has the marker's watermark in force. An earlier incarnation has written their output.

Acceptance of records is not decided again either: a record without a dead letter was accepted, and
must be accepted again. Only a rebuild chosen by the user validates records anew, and the refused
ones become dead letters.
"""

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from brokers.kafka_interface import Isolation, KafkaCluster, TopicAdmin, complete
from brokers.records import Ends
from pipeline.clock import rfc3339
from pipeline.counting import counted
from pipeline.errors import BrokenInvariantError, RefusedError, RetryError
from pipeline.ids import BoxName, FragmentName, Offset, SchemaHandle, TopicName
from pipeline.lanes.acknowledged import lost_input
from pipeline.lanes.batch import UNLIKE, BatchFacts
from pipeline.lanes.left_out import LeftOut, left_out, sent_again, within
from pipeline.lanes.needed_letters import first_gone
from pipeline.lanes.rebuild_pieces import Piece
from pipeline.lanes.start.decision import Rebuild
from pipeline.lanes.start.markers import passed_over
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition, Positions
from pipeline.names import FragmentNames
from pipeline.spark.batch.ports import Schemas
from pipeline.spark.batch.rejected import Rejected, of_functions
from pipeline.spark.query.lowered import Lowered, TopicRole

T = TypeVar("T")
_log = logging.getLogger(__name__)

READ_TIMEOUT_S = 60.0
TRIES_MAX: Final = 3
"""Maximum number of rebuilds in which a function refuses records it had accepted before."""
NAMED_MAX: Final = 5
"""Maximum number of refused records per path in the message."""
_CHOICES: Final = (
    "Or deploy with `--state FRAGMENT=rebuild` (records are judged anew, and those that cannot be "
    "processed become dead letters) or `--state FRAGMENT=empty` (what was read before counts in no "
    "later result)"
)
_OVERTAKEN = (
    "nothing of it can be had back from Kafka: deploy with `--state {fragment}=empty` to go on "
    "without these records, and raise `retention.ms` of the topic if it is to be down for so long"
)


class UnlikeError(RetryError):
    """A user function refuses records in a rebuild that it had accepted before."""

    code = "function-unlike"


class NotDeterministicError(RefusedError):
    """A user function refuses accepted records in each rebuild."""


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """A prepared rebuild.

    Args:
        start: the decision.
        begin: first offset to read in each partition.
        left_out: records to exclude.
    """

    start: Rebuild
    begin: Positions
    left_out: tuple[LeftOut, ...]

    @property
    def needed(self) -> Positions:
        """The oldest positions that the state needs afterwards."""
        start = self.start
        return self.begin if start.since is None or start.begin is None else start.begin

    def check(self, facts: BatchFacts, piece: Piece, place: str) -> None:
        """Compare an executed batch with its plan, of which the last is that of the last marker.

        Args:
            facts: of the batch.
            piece: as planned.
            place: names the fragment, for the error.

        Raises:
            BrokenInvariantError: they differ; nothing was published.
        """
        wrong = []
        if facts.batch != piece.batch:
            wrong.append(f"batch {facts.batch} instead of {piece.batch}")
        if dict(facts.end) != dict(piece.end):
            wrong.append(f"batch {piece.batch} ended at other positions than planned")
        if (facts.eviction_ms or 0) != (piece.watermark_ms or 0):
            wrong.append(f"watermark {facts.eviction_ms} instead of {piece.watermark_ms}")
        if facts.late:
            wrong.append("rows counted as late")
        if wrong:
            raise BrokenInvariantError(
                f"the rebuilt state is not right: {'; '.join(wrong)}",
                place=place,
                hint="nothing was published, and the last commit marker stands; keep the topics, "
                f"and report this. {_CHOICES}",
            )

    def check_accepted(
        self,
        facts: BatchFacts,
        first: Callable[[], Sequence[Rejected]],
        functions: Mapping[str, tuple[BoxName, ...]],
        place: str,
    ) -> None:
        """Check that every previously accepted record is accepted again.

        Args:
            facts: of the executed batch.
            first: finds the first refused records.
            functions: path → its boxes that call user functions.
            place: names the fragment, for the error.

        Raises:
            UnlikeError: only user functions have refused records.
            RefusedError: other records are refused now, for instance since their schema is gone.
        """
        if not facts.bad:
            return
        found = first()
        failed = [path for path, total in facts.failed.items() if total]
        others = [one for one in found if not failed or one.port not in failed]
        if failed and not others:
            raise UnlikeError(
                "a function refuses records in a rebuild that it had not refused before: "
                f"{_named(found) or 'others each time that it is called'}",
                place=of_functions(functions, failed),
                hint=UNLIKE,
            )
        raise RefusedError(
            f"the state cannot be rebuilt exactly: {counted(facts.bad, 'record')} that had been "
            f"accepted cannot be read now: {_named(found) or 'a second look finds none of them'}",
            place=place,
            hint="bring back what is missing (a schema that was deleted, or a registry that is "
            "older than the records), then `medusa pause` and `medusa resume` the fragment: "
            f"nothing is lost. {_CHOICES}",
        )


@dataclass(frozen=True, slots=True)
class Log:
    """Reads of the input log in Kafka for a rebuild."""

    kafka: KafkaCluster
    admin: TopicAdmin

    def prepare(self, start: Rebuild, lowered: Lowered, names: FragmentNames) -> Rebuilding:
        """Compute where to read from and which records to exclude.

        A chosen rebuild may find no dead letters of redriven records that are valid now: they count
        at their new place, not at the original one.

        Raises:
            RefusedError: records that the state needs, or dead letters, were removed.
            RetryError: a partition is gone, so its topic was recreated; the next start reports it.
            UnavailableError: Kafka does not answer, or a partition has no leader.
        """
        dead_letters = names.dead_letters
        end, sources = start.marker.end, start.marker.sources
        begin = start.begin if start.since is None else start.since.end
        read = None if begin is None else {at.topic for at in begin if begin[at] < end[at]}
        earliest = self.earliest(lowered, read)
        known = {at.topic for at in earliest}
        for at in sorted(at for at in end if at.topic in known and at not in earliest):
            raise RetryError(
                "the partition is gone: the topic was deleted, and made again with fewer",
                place=f"topic {at.topic}, partition {at.partition}",
            )
        found = complete(self.admin.start_offsets((dead_letters,)), (dead_letters,))[dead_letters]
        start = with_dead_letters(start, found, dead_letters)
        if begin is None:
            begin = {**_from_earliest(end, earliest, lowered), **start.not_before}
        for at in sorted(begin):
            if begin[at] < end[at] and begin[at] < earliest[at]:
                raise self._too_short(at, begin[at], earliest[at])
        if all(begin[at] >= end[at] for at in begin):  # no record is read, so none is left out
            return Rebuilding(start, begin, ())
        ends = complete(self.admin.end_offsets((dead_letters,)), (dead_letters,))
        gone = set(self._named(dead_letters, found, ends, partial(left_out, sources=sources)))
        if start.begin is None:
            gone.update(self._sent_again(names.redrive, start.marker))
        return Rebuilding(start, begin, tuple(sorted(x for x in gone if within(x, begin, end))))

    def overtaken(
        self, marker: CommitMarker, lowered: Lowered, fragment: FragmentName
    ) -> RefusedError | None:
        """Error for records that were removed before they were read; None if there are none."""
        earliest = self.earliest(lowered)
        for at, read in sorted(marker.end.items()):
            place = f"topic {at.topic}, partition {at.partition}"
            begins = earliest.get(at, read)
            if read < begins:
                since = self._time_of(at, begins)
                return RefusedError(
                    f"the records from offset {read} on were removed before they were read: the "
                    f"topic begins at {begins} now{since}; everything before offset {read} was "
                    f"read by {rfc3339(marker.written_at_ms)}",
                    place=place,
                    hint=_OVERTAKEN.format(fragment=fragment),
                )
        return lost_input(marker, self.ends({at.topic for at in marker.end}), fragment)

    def clamped(
        self, marker: CommitMarker, lowered: Lowered, log: "logging.LoggerAdapter[logging.Logger]"
    ) -> CommitMarker:
        """The marker limited to the present ranges of its topics, by choice of the user."""
        ends = self.ends({at.topic for at in marker.end})
        latest = {at: ends.get(at.topic, {}).get(at.partition, o) for at, o in marker.end.items()}
        found = passed_over(marker, self.earliest(lowered), latest)
        for at, offset in sorted(marker.end.items()):
            if found.end[at] != offset:
                place = f"topic {at.topic}, partition {at.partition}"
                log.warning("%s: read on at %d instead of %d", place, found.end[at], offset)
        return found

    def ends(self, topics: Iterable[TopicName]) -> Ends:
        """Ends of topics, open transactions included."""
        names = sorted(topics)
        return complete(self.admin.end_offsets(names, Isolation.UNCOMMITTED), names)

    def earliest(
        self, lowered: Lowered, only: Container[TopicName] | None = None
    ) -> dict[InputPartition, Offset]:
        """The oldest offset of every partition that is read; `only` of these topics."""
        every = {t.topic for source in lowered.sources for t in source.topics}
        topics = sorted(topic for topic in every if only is None or topic in only)
        starts = complete(self.admin.start_offsets(topics), topics)
        return {
            InputPartition(source.input, assigned.topic, partition): offset
            for source in lowered.sources
            for assigned in source.topics
            if assigned.topic in starts
            for partition, offset in starts[assigned.topic].items()
        }

    def _sent_again(self, redrive: TopicName, marker: CommitMarker) -> Iterator[LeftOut]:
        """Original places of redriven records, read by now or not.

        Also those in a topic that was just created: the lane will read it.
        """
        if redrive not in self.admin.describe((redrive,)):
            return iter(())
        starts = complete(self.admin.start_offsets((redrive,)), (redrive,))
        ends = complete(self.admin.end_offsets((redrive,)), (redrive,))
        return self._named(
            redrive, starts[redrive], ends, partial(sent_again, sources=marker.sources)
        )

    def _named(
        self,
        topic: TopicName,
        starts: Mapping[int, Offset],
        ends: Ends,
        of: Callable[..., LeftOut | None],
    ) -> Iterator[LeftOut]:
        """The places in the headers of a topic's records; `of` decodes them."""
        with self.kafka.reader(READ_TIMEOUT_S) as reader:
            reader.assign({topic: starts})
            for record in reader.read_to(ends):
                place = f"topic {topic}, partition {record.partition}, offset {record.offset}"
                found = of(record.headers, place=place)
                if found is not None:
                    yield found

    def _too_short(self, at: InputPartition, needed: Offset, earliest: Offset) -> RefusedError:
        since = self._time_of(at, earliest)
        return RefusedError(
            f"the state cannot be rebuilt: it needs the records from offset {needed} on, the topic "
            f"begins at {earliest}{since}",
            place=f"topic {at.topic}, partition {at.partition}",
            hint="put the newest checkpoint folder back, or deploy again with "
            "`--state FRAGMENT=rebuild` (from what is left: results of windows and pairs that "
            "reach further back will lack it) or `--state FRAGMENT=empty` (what was read before "
            "counts in no later result)",
        )

    def _time_of(self, at: InputPartition, offset: Offset) -> str:
        with self.kafka.reader(READ_TIMEOUT_S) as reader:
            reader.assign({at.topic: {at.partition: offset}})
            found = reader.poll(1.0, 1)
        return f" ({rfc3339(found[0].timestamp_ms)})" if found else ""


def tried(rebuild: Callable[[], T], empty_folder: Callable[[], object]) -> T:
    """Rebuild a state; retry in an empty folder if a function refuses accepted records.

    Raises:
        NotDeterministicError: it does in each of `TRIES_MAX` rebuilds.
    """
    for _ in range(TRIES_MAX - 1):
        try:
            return rebuild()
        except UnlikeError as error:
            _log.warning("the state is rebuilt once more: %s", error)
            empty_folder()
    try:
        return rebuild()
    except UnlikeError as error:
        raise NotDeterministicError(
            f"{error.message} (given up after {TRIES_MAX} rebuilds)",
            place=error.place,
            hint=f"{error.hint}. {_CHOICES}",
        ) from error


def look_up(
    unknown: tuple[SchemaHandle, ...], schemas: Schemas, *, chosen: bool
) -> tuple[SchemaHandle, ...]:
    """The unplanned schemas of a rebuild that the registry has.

    In a rebuild that was not chosen, each existed before: a missing one is not recorded, since its
    records stay accepted.
    """
    return schemas.look_up(unknown) if chosen else schemas.existing(unknown)


def _named(found: Sequence[Rejected]) -> str:
    return "; ".join(
        f"topic {one.topic}, partition {one.partition}, offset {one.offset}: {one.why.message}"
        for one in found[:NAMED_MAX]
    )


def with_dead_letters(start: Rebuild, starts: Mapping[int, Offset], topic: TopicName) -> Rebuild:
    """Set the dead-letter offsets that the rebuild needs in its marker.

    Args:
        start: the decision.
        starts: the oldest offset of each partition of the dead-letter topic.
        topic: the dead-letter topic.

    Raises:
        RefusedError: dead letters that it needs were removed.
    """
    marker, begin = start.marker, start.begin
    if begin is None:  # chosen: records without a dead letter are validated anew
        return replace(start, marker=replace(marker, letters_from=starts))
    if all(begin[at] >= end for at, end in marker.end.items() if at in begin):
        return replace(start, marker=replace(marker, letters_from={}))
    gone = first_gone(marker.letters_from, starts)
    if gone is not None:
        partition, needed, earliest = gone
        raise RefusedError(
            "the state cannot be rebuilt exactly: which records were left out is said by the dead "
            f"letters from offset {needed} on, and the topic begins at {earliest}",
            place=f"topic {topic}, partition {partition}",
            hint="put the newest checkpoint folder back, or deploy again with "
            "`--state FRAGMENT=rebuild` (what was left out is judged anew) or "
            "`--state FRAGMENT=empty` (what was read before counts in no later result); and see "
            "that retention.ms and retention.bytes of the topic are -1",
        )
    return start


def _from_earliest(end: Positions, earliest: Positions, lowered: Lowered) -> Positions:
    """Begin positions: the oldest offsets of topics that carry records; others unchanged."""
    roles = {
        (source.input, assigned.topic): assigned.role
        for source in lowered.sources
        for assigned in source.topics
    }
    carried = {TopicRole.DATA, TopicRole.REDRIVE}
    return {
        at: min(offset, earliest[at]) if roles[at.input, at.topic] in carried else offset
        for at, offset in end.items()
    }
