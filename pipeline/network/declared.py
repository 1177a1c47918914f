"""Settings that a network, a box or an output may declare, as written."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pipeline.ids import BoxName
from pipeline.network.fields import Report

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Declared(Generic[T]):
    """A setting as written.

    Args:
        of: the box, or the box of the output; None: the network.
        value: None: not declared, or invalid (reported).
        line: where it is written.
    """

    of: BoxName | None
    value: T | None = None
    line: int = 0


def check_declared(
    key: str,
    boxes: Iterable[Declared[T]],
    outputs: Iterable[Declared[T]],
    routes: Mapping[str, str],
    report: Report,
) -> None:
    """Report outputs that declare what their box declares, too.

    Args:
        key: of the setting.
        boxes: those of the boxes.
        outputs: those of the outputs.
        routes: the route of each branch.
        report: receives mistakes.
    """
    own = {one.of for one in boxes if one.value is not None}
    for one in outputs:
        if one.of is None or one.value is None:
            continue
        box = BoxName(routes.get(one.of, one.of))
        if box in own:
            article = "an" if key[0] in "aeiou" else "a"
            message = f"box {box} has {article} {key} of its own: write it there or here"
            report.add(message, one.line, box=one.of)
