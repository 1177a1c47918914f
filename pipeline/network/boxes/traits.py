"""The table of box kinds: one row of traits for each kind, the same for every layer.

The reader of documents, the planner, the rules of event time, the compiler to Spark and `explain`
ask this table what a box does, and not of which kind it is. A new kind is a row here and a file in
each layer; see "Where to add things" in `docs/architecture.md`.

Asking for a kind by name is left to code that is about that kind alone: its own files, passes that
rewrite it, and code that runs the functions of users.
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
"""Takes a box out of its YAML; None: something is wrong with it (reported)."""


class Provenance(Enum):
    """What an output row is made of, and so whose event time and key it can have."""

    PASSED = "passed"
    """One row of an input, as it is; but for the column by which a route marks its rows."""
    COMPUTED = "computed"
    """Expressions over one row of the input."""
    CALLED = "called"
    """What a function of a user returns for one row of the input."""
    COMBINED = "combined"
    """Several rows."""


class Keeps(Enum):
    """What is kept from one batch to the next, and so in which order results come."""

    NOTHING = "nothing"
    """Results keep the order of each input partition."""
    GROUPS = "groups"
    """An accumulator for each window or session and group: results are ordered by event time."""
    ROWS = "rows"
    """Rows that wait for others: no order of results."""


class Lateness(Enum):
    """Who judges whether a row is late: it counts in no result, and goes to the dead letters."""

    NONE = "none"
    """No row is late: with nothing kept, it is passed on."""
    GROUP = "group"
    """Spark drops a row whose last window, or of sessions whose own event time, is closed. Where a
    batch is read a second time, exactly these must be found, also if Spark has dropped none."""
    ROW = "row"
    """Spark drops a row by its own event time. Late rows are looked for if it has dropped some."""
    ANSWER = "answer"
    """As `ROW`; but a row that is sent again with its answer is never late, since it waits for
    nothing. So a dead letter of a result names its row and holds the answer."""


@dataclass(frozen=True, slots=True)
class Traits:
    """The row of one kind.

    Args:
        read: reads a box from a document; None: such boxes come with boxes of another kind.
        provenance: what an output row is made of.
        reads: (box, stream) → the columns of the stream that the box itself evaluates; None: all.
            Of rows that are passed on, the boxes behind read more.
        keeps: the state.
        shape: (box, sources) → when event time releases results, whether they wait for it, and so
            may be wrong without an input: see `Shape`.
        lateness: who judges late rows.
        reads_twice: whether a query reads each row in two places.
        explodes: whether one row can give several.
        private: whether only the boxes that come with it read its output, which has no topic.
    """

    read: Read | None
    provenance: Provenance
    reads: Callable[[Any, StreamName], frozenset[str] | None] = read_by_expressions
    keeps: Keeps = Keeps.NOTHING
    shape: Callable[[Any, Sources], Shape] = stateless
    lateness: Lateness = Lateness.NONE
    reads_twice: bool = False
    explodes: bool = False
    private: bool = False

    @property
    def stateful(self) -> bool:
        """Whether anything is kept across batches."""
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
        ),
        "top": Traits(
            top.read,
            Provenance.COMBINED,
            keeps=Keeps.GROUPS,
            shape=top.shape,
            lateness=Lateness.GROUP,
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
        ),
    }
)
"""`Box.kind` → its row. The order is that in which messages list the kinds."""

KINDS: Mapping[str, Read] = {kind: row.read for kind, row in TRAITS.items() if row.read}
"""The word in the document → how such a box is read."""


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
