"""Interface of a kind of box to the planner: its descriptions in the user's words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pipeline.network.boxes.flat_map import FlatMap
from pipeline.network.boxes.map import Map
from pipeline.network.model import Box, Computed, Expression
from pipeline.planner.rename_columns import plain_column

Facts = tuple[tuple[str, str], ...]
"""Label and text, such as `("where", "speed > 0")`; the labels of one box are all different."""

_BoxT_contra = TypeVar("_BoxT_contra", bound=Box, contravariant=True)


def no_facts(_box: Box) -> Facts:
    """For a kind described by its inputs alone."""
    return ()


@dataclass(frozen=True, slots=True)
class Words(Generic[_BoxT_contra]):
    """Descriptions of one kind of box in the user's words; the rest is in the table of traits.

    Args:
        facts: everything that determines a box's results, except its inputs.
        keeps: its state and until when it is kept; None for a stateless kind.
        passes_on: input column → output column that repeats it, for a kind that computes columns of
            one row; None for one that repeats none.
    """

    facts: Callable[[_BoxT_contra], Facts] = no_facts
    keeps: Callable[[_BoxT_contra], str] | None = None
    passes_on: Callable[[_BoxT_contra], Mapping[str, str]] | None = None


def repeated_columns(box: Map | FlatMap) -> Mapping[str, str]:
    """The columns of `select` that repeat one of the input unchanged."""
    plain = ((plain_column(column.expression), column.name) for column in box.select)
    return {source.name: name for source, name in plain if source is not None}


def computed_facts(what: str, columns: tuple[Computed, ...]) -> Facts:
    """One fact for each computed column."""
    return tuple((f"{what} {column.name}", on_one_line(column.expression)) for column in columns)


def on_one_line(expression: Expression) -> str:
    """An expression as the user wrote it, on one line."""
    return " ".join(expression.text.split())
