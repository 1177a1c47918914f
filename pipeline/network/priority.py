"""`priority` of a network, an output or a box: which fragments run if there is not room for all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.ids import BoxName
from pipeline.network.fields import Fields, Report
from pipeline.priority import Priority

_KEY = "priority"
_PRIORITIES = tuple(one.value for one in Priority)


@dataclass(frozen=True, slots=True)
class DeclaredPriority:
    """A priority as written.

    Args:
        of: the box, or the box of the output; None: the network.
        priority: None: not declared, or invalid (reported).
        line: where it is written.
    """

    of: BoxName | None
    priority: Priority | None
    line: int


def read_priority(fields: Fields, of: BoxName | None) -> DeclaredPriority:
    """Read the key `priority`; mistakes are reported.

    Args:
        fields: the entries of the document, the output or the box.
        of: the box, or the box of the output; None: the network.
    """
    word = fields.choice(_KEY, _PRIORITIES, "")
    return DeclaredPriority(of, Priority(word) if word else None, fields.line_of(_KEY))


def check_priorities(
    boxes: Iterable[DeclaredPriority],
    outputs: Iterable[DeclaredPriority],
    routes: Mapping[str, str],
    report: Report,
) -> None:
    """Report outputs that declare what their box declares, too.

    Args:
        boxes: those of the boxes.
        outputs: those of the outputs.
        routes: the route of each branch.
        report: receives mistakes.
    """
    own = {one.of for one in boxes if one.priority is not None}
    for one in outputs:
        if one.of is None or one.priority is None:
            continue
        box = BoxName(routes.get(one.of, one.of))
        if box in own:
            message = f"box {box} has a priority of its own: write it there or here"
            report.add(message, one.line, box=one.of)
