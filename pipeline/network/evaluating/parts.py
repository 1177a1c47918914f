"""Computable parts of an expression, and their composition."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.network.evaluating.casting import cast
from pipeline.network.evaluating.failing import RowFailedError
from pipeline.network.evaluating.values import Value
from pipeline.network.function_rules import Kind
from pipeline.network.term import Term
from pipeline.network.types import DataType

Row = Mapping[str, Value]
"""The values of a row by the names of its columns."""

Compute = Callable[[Row], Value]


@dataclass(frozen=True, slots=True)
class Part:
    """A checked sub-expression and its function."""

    term: Term
    compute: Compute


def converted(part: Part, to: DataType) -> Compute:
    """A part converted to another type.

    Raises:
        FaultError: only Spark implements this cast.
    """
    change, compute = cast(part.term.type, to), part.compute
    if part.term.type == to:
        return compute

    def run(row: Row) -> Value:
        value = compute(row)
        return None if value is None else change(value)

    return run


def as_kinds(parts: Sequence[Part], kinds: Sequence[Kind]) -> list[Compute]:
    """The arguments of a call in the types of its kinds."""
    return [converted(part, kind(part.term).type) for part, kind in zip(parts, kinds, strict=False)]


def strict(arguments: Sequence[Compute], compute: Callable[..., Value]) -> Compute:
    """Computes all arguments; null if one of them is."""

    def run(row: Row) -> Value:
        values = [argument(row) for argument in arguments]
        return None if None in values else compute(*values)

    return run


def swallowing(compute: Callable[..., Value]) -> Callable[..., Value]:
    """Null if the function itself fails."""

    def run(*values: Value) -> Value:
        try:
            return compute(*values)
        except RowFailedError:
            return None

    return run
