"""Results that could not be computed, and the context of their dead letters. Pure.

Such a result has no single record. For an as-of join, the record of its left row and the matching
version are reported: with both the result can be computed again, by a corrected expression.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from pipeline.ids import BoxName, Millis, NetworkVersion
from pipeline.lanes.dead_letters import Context, DeadLetter
from pipeline.markers.positions import MarkedSource
from pipeline.planner.plan import Fragment
from pipeline.spark.query.reasons import failed

ROW_COLUMNS: Final = ("row", "held", "answered")
"""Columns of an as-of result: the record of its left row as JSON and the matching version, both
only if it could not be computed; and whether the row was redriven with its version."""


@dataclass(frozen=True, slots=True)
class FailedRow:
    """The left row of a result of an as-of join.

    Args:
        path: the name of its path.
        partition: of its record.
        offset: of its record; in the redrive topic if this is not the first attempt.
        attempt: number of the attempt, from 1.
        first: `topic/partition/offset` of the original of a redriven record.
        held: the encoded matching version; None: there was none.
    """

    path: str
    partition: int
    offset: int
    attempt: int
    first: str | None
    held: bytes | None

    @classmethod
    def read(cls, record: str, held: bytes | None) -> "FailedRow":
        """Decode the first two of `ROW_COLUMNS`."""
        fields = json.loads(record)
        return cls(
            fields["path"],
            fields["partition"],
            fields["offset"],
            fields["attempt"],
            fields.get("first"),
            held,
        )


@dataclass(frozen=True, slots=True)
class FailedResult:
    """A result that could not be computed.

    Args:
        reason: see `hidden.Failed`.
        value: its inputs as JSON.
        timestamp_ms: its event time.
        row: the left row, for an as-of join.
    """

    reason: str
    value: bytes
    timestamp_ms: Millis
    row: FailedRow | None = None

    def letter(
        self,
        fragment: Fragment,
        version: NetworkVersion,
        sources: Iterable[MarkedSource],
        decided: str,
    ) -> DeadLetter:
        """Its dead letter.

        Args:
            fragment: that could not compute it.
            version: of its network.
            sources: of the lane.
            decided: digest of the settings that decide the matching version.
        """
        return DeadLetter(self._context(fragment, version, sources, decided), None, self.value)

    def _context(
        self,
        fragment: Fragment,
        version: NetworkVersion,
        sources: Iterable[MarkedSource],
        decided: str,
    ) -> Context:
        why = failed(self.reason)
        found = Context(
            reason=why.reason.value,
            message=why.message,
            box=BoxName(why.box),
            input=None,
            port="",
            topic=None,
            partition=None,
            offset=None,
            timestamp_ms=self.timestamp_ms,
            version=version,
            field=why.field,
        )
        row = self.row
        if row is None:
            return found
        way = next(way for way in fragment.ways if way.name == row.path)
        source = next(one for one in sources if one.name == way.source)
        topic = fragment.names.redrive if row.attempt > 1 else source.topics[0][0]
        return replace(
            found,
            input=source.name,
            port=way.name,
            source=source.id,
            topic_id=dict(source.topics)[topic],
            attempt=row.attempt,
            row=f"{topic}/{row.partition}/{row.offset}",
            first=row.first,
            held=row.held,
            held_by=decided,
        )
