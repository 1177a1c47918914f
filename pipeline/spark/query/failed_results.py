"""Results that could not be computed: what the query says of them, and their dead letters. Pure.

No single record stands for one. But of an as-of join one record is known that it was made of, that
of its left row; what the table said of that is known, too. With both the result can be computed
again, by an expression that does not fail.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from pipeline.ids import BoxName, Millis, NetworkVersion
from pipeline.lanes.dead_letters import Context
from pipeline.markers.positions import MarkedSource
from pipeline.planner.plan import Fragment
from pipeline.spark.query.reasons import failed

ROW_COLUMNS: Final = ("row", "held", "answered")
"""Of a result of an as-of join: the record of its left row, as JSON, and what the table said, both
only of one that could not be computed; and whether it was said before the row was sent again."""


@dataclass(frozen=True, slots=True)
class FailedRow:
    """The left row of a result of an as-of join.

    Args:
        path: the name of the way on which it came.
        partition: where its record stands.
        offset: the same; in the topic of records that were sent again, if there was an attempt.
        attempt: which attempt at it this was, from 1.
        first: `topic/partition/offset` where a record that was sent again stood at first.
        held: what the table said of it, in bytes; None: nothing.
    """

    path: str
    partition: int
    offset: int
    attempt: int
    first: str | None
    held: bytes | None

    @classmethod
    def read(cls, told: str, held: bytes | None) -> "FailedRow":
        """What a query says in the first two of `ROW_COLUMNS`."""
        said = json.loads(told)
        return cls(
            said["path"],
            said["partition"],
            said["offset"],
            said["attempt"],
            said.get("first"),
            held,
        )


@dataclass(frozen=True, slots=True)
class FailedResult:
    """A result that could not be computed.

    Args:
        reason: see `hidden.Failed`.
        value: JSON of what it was to be computed from.
        timestamp_ms: its own time.
        row: of an as-of join, its left row.
    """

    reason: str
    value: bytes
    timestamp_ms: Millis
    row: FailedRow | None = None

    def context(
        self,
        fragment: Fragment,
        version: NetworkVersion,
        sources: Iterable[MarkedSource],
        decided: str,
    ) -> Context:
        """For its dead letter.

        Args:
            fragment: which could not compute it.
            version: of its network.
            sources: of the lane.
            decided: digest of what decides what a table says of a row.
        """
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
