"""Restoring: the state of a settler after a crash, from its tentative topic.

Results that were confirmed or replaced have no record there, so they are open again until the
stable results are read again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.ids import Millis
from pipeline.tentative.by_time import MOST_OPEN, later
from pipeline.tentative.generation import Generation
from pipeline.tentative.records import (
    DoneMark,
    TentativeRecord,
    TentativeResult,
    Undo,
    digest,
    undo_of,
)
from pipeline.tentative.settling import Left, OpenResult, Settling


@dataclass(frozen=True, slots=True)
class Restored:
    """A settler that continues after a crash.

    Before its next `settle`, the stable results from its `first_open_ms` on have to be read.

    Args:
        settling: its state.
        forgotten: number of open results that it could not keep. Readers undo those without a
            record, since the stable boundary passes them.
    """

    settling: Settling
    forgotten: int


def restored(
    records: Iterable[TentativeRecord], partitions: int, most_open: int = MOST_OPEN
) -> Restored:
    """The state of a settler after a crash; all forks have ended.

    Args:
        records: those of each partition in order; of several partitions in any order.
        partitions: the number of partitions of the topic.
        most_open: as of a `Settling`.
    """
    reading = _Reading(most_open)
    for record in records:
        reading.add(record)
    return Restored(Settling.resumed(reading.left(partitions), most_open), reading.forgotten)


class _Reading:
    def __init__(self, most_open: int) -> None:
        self.forgotten = 0
        self._most = most_open
        self._last_of_id: dict[bytes, OpenResult | Undo] = {}
        self._last_ms: dict[Generation, Millis] = {}
        self._marked: dict[Generation, set[int]] = {}
        self._promised_ms: Millis | None = None

    def add(self, record: TentativeRecord) -> None:
        """Add the next record of a partition."""
        match record:
            case TentativeResult():
                self._add_result(record)
            case Undo():
                self._passed(record.generation, record.timestamp_ms)
                self._promised_ms = later(record.timestamp_ms, self._promised_ms)
                self._last_of_id[record.id] = record
            case DoneMark():
                self._passed(record.generation, record.promised_ms)
                self._promised_ms = later(record.promised_ms, self._promised_ms)
                self._marked.setdefault(record.generation, set()).add(record.partition)

    def left(self, partitions: int) -> Left:
        """What is left; a mark that is missing in a partition makes the generation done again."""
        self._compact()
        done = {one for one, marked in self._marked.items() if len(marked) >= partitions}
        return Left(
            open_results=[one for one in self._last_of_id.values() if isinstance(one, OpenResult)],
            last_ms={one: at for one, at in self._last_ms.items() if one not in done},
            promised_ms=self._promised_ms,
            newest=max(self._last_ms, default=None),
        )

    def _add_result(self, record: TentativeResult) -> None:
        self._passed(record.generation, record.timestamp_ms)
        before = self._last_of_id.get(record.id)
        if record.generation in self._marked or isinstance(before, Undo):
            return
        if before is not None and before.undo.generation > record.generation:
            return
        self._last_of_id[record.id] = OpenResult(undo_of(record), digest(record.value))
        if len(self._last_of_id) > 2 * self._most:
            self._compact()

    def _passed(self, generation: Generation, time_ms: Millis) -> None:
        self._last_ms[generation] = later(time_ms, self._last_ms.get(generation))

    def _compact(self) -> None:
        """Drop what is done, then the first results by event time until there is room.

        A mark in one partition is enough: it is sent when everything is settled.
        """
        kept = {
            result_id: one
            for result_id, one in self._last_of_id.items()
            if _undo(one).generation not in self._marked
        }
        if len(kept) > self._most:
            by_time = sorted(kept, key=lambda one: (_undo(kept[one]).timestamp_ms, one))
            for result_id in by_time[: len(kept) - self._most]:
                self.forgotten += isinstance(kept.pop(result_id), OpenResult)
        self._last_of_id = kept


def _undo(one: OpenResult | Undo) -> Undo:
    return one if isinstance(one, Undo) else one.undo
