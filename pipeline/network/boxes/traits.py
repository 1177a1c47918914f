"""The table of box kinds: one row of traits for each kind, the same for every layer.

The reader of documents, the planner, the rules of event time, the compiler to Spark and `explain`
read this table instead of testing the kind of a box. A new kind is a row here and a file in each
layer; see "Where to add things" in `docs/architecture.md`.

Only code about a single kind tests for it by name: its own files, passes that rewrite it, and code
that runs user-defined functions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from pipeline.errors import BrokenInvariantError
from pipeline.ids import BoxName, StreamName
from pipeline.network.boxes import (
    aggregate,
    as_of,
    deduplicate,
    filter,  # noqa: A004 - a kind, not the built-in
    flat_map,
    join,
    map,  # noqa: A004 - a kind, not the built-in
    python,
    route,
    sides,
    top,
    union,
)
from pipeline.network.boxes.common import Defaults, Draft, read_by_expressions
from pipeline.network.boxes.shape import Shape, Sources, stateless
from pipeline.network.fields import Fields
from pipeline.network.model import Box

Read = Callable[[BoxName, Fields, Defaults], Draft | None]
"""Reads a box from its YAML; None: invalid (reported)."""


class Provenance(Enum):
    """Origin of an output row, which determines possible event times and keys."""

    PASSED = "passed"
    """One unchanged row of an input, except for the branch column of a route."""
    COMPUTED = "computed"
    """Expressions over one row of the input."""
    CALLED = "called"
    """The result of a user-defined function for one row of the input."""
    COMBINED = "combined"
    """Several rows."""


class Keeps(Enum):
    """The state between batches, which determines the order of results."""

    NOTHING = "nothing"
    """Results keep the order of each input partition."""
    GROUPS = "groups"
    """An accumulator for each window or session and group: results are ordered by event time."""
    ROWS = "rows"
    """Rows that wait for others: results have no order."""


class Lateness(Enum):
    """Detection of late rows, which count in no result and become dead letters."""

    NONE = "none"
    """No row is late: without state, it is passed on."""
    GROUP = "group"
    """Spark drops a row whose last window, or of sessions whose own event time, is closed. When a
    batch is executed again, exactly these must be found, also if Spark has dropped none."""
    ROW = "row"
    """Spark drops a row by its own event time. Late rows are searched if it has dropped some."""
    ANSWER = "answer"
    """As `ROW`; but a row that is sent again with its result is never late, since it waits for
    nothing. So a dead letter of a result names its row and contains the result."""


@dataclass(frozen=True, slots=True)
class Traits:
    """The traits of one kind.

    Args:
        read: reads a box from a document; None: such boxes are created with boxes of another kind.
        provenance: origin of an output row.
        reads: (box, stream) → the columns of the stream that the box itself evaluates; None: all.
            Of rows that are passed on, the boxes behind read more.
        keeps: the state.
        shape: (box, sources) → when event time releases results, whether they wait for it, and so
            may be wrong without an input: see `Shape`.
        lateness: detection of late rows.
        reads_twice: whether a query reads each row in two places.
        explodes: whether one row can produce several.
        in_order: whether all results are released by event time: a boundary separates them from
            those that come later. Without state they come as the records do.
        private: whether only the boxes created with it read its output, which has no topic.
    """

    read: Read | None
    provenance: Provenance
    reads: Callable[[Any, StreamName], frozenset[str] | None] = read_by_expressions
    keeps: Keeps = Keeps.NOTHING
    shape: Callable[[Any, Sources], Shape] = stateless
    lateness: Lateness = Lateness.NONE
    reads_twice: bool = False
    explodes: bool = False
    in_order: bool = False
    private: bool = False

    @property
    def stateful(self) -> bool:
        """Whether state is kept across batches."""
        return self.keeps is not Keeps.NOTHING

    @property
    def from_one_row(self) -> bool:
        """Whether an output row is made of one row, whose event time and key it can have."""
        return self.provenance is not Provenance.COMBINED


TRAITS: Mapping[str, Traits] = MappingProxyType(
    {
        "filter": Traits(filter.read, Provenance.PASSED),
        "map": Traits(map.read, Provenance.COMPUTED),
        "flat_map": Traits(flat_map.read, Provenance.COMPUTED, explodes=True),
        "aggregate": Traits(
            aggregate.read,
            Provenance.COMBINED,
            reads=aggregate.reads,
            keeps=Keeps.GROUPS,
            shape=aggregate.shape,
            lateness=Lateness.GROUP,
            in_order=True,
        ),
        "join": Traits(
            join.read,
            Provenance.COMBINED,
            reads=sides.reads,
            keeps=Keeps.ROWS,
            shape=join.shape,
            lateness=Lateness.ROW,
        ),
        "as_of": Traits(
            as_of.read,
            Provenance.COMBINED,
            reads=sides.reads,
            keeps=Keeps.ROWS,
            shape=as_of.shape,
            lateness=Lateness.ANSWER,
            in_order=True,
        ),
        "top": Traits(
            top.read,
            Provenance.COMBINED,
            keeps=Keeps.GROUPS,
            shape=top.shape,
            lateness=Lateness.GROUP,
            in_order=True,
        ),
        "union": Traits(union.read, Provenance.PASSED),
        "python": Traits(python.read, Provenance.CALLED, reads=python.reads),
        "route": Traits(route.read, Provenance.PASSED, private=True),
        "branch": Traits(None, Provenance.PASSED, reads=route.branch_reads),
        "deduplicate": Traits(
            deduplicate.read,
            Provenance.PASSED,
            reads=deduplicate.reads,
            keeps=Keeps.ROWS,
            shape=deduplicate.shape,
            lateness=Lateness.ROW,
            reads_twice=True,
            in_order=True,
        ),
    }
)
"""`Box.kind` → its row. The order is that in which messages list the kinds."""

KINDS: Mapping[str, Read] = {kind: row.read for kind, row in TRAITS.items() if row.read}
"""Key in the document → the reader of such a box."""

STATEFUL_KINDS = tuple(kind for kind, row in TRAITS.items() if row.stateful)
"""The kinds of boxes that keep state."""


def traits(box: Box) -> Traits:
    """The row of a box's kind.

    Raises:
        BrokenInvariantError: the table has none.
    """
    found = TRAITS.get(box.kind)
    if found is None:
        message = f"the table of traits has no row for a box of kind {box.kind}"
        raise BrokenInvariantError(message, place=f"box {box.name}")
    return found
