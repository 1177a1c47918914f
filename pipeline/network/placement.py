"""`placement` of a network, an output or a box: on which nodes, and apart from which boxes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from pipeline import labels
from pipeline.ids import BoxName
from pipeline.labels import Selector
from pipeline.nearest import nearest_first
from pipeline.network.fields import Fields, Report, Text

_KEY = "placement"


@dataclass(frozen=True, slots=True)
class Placement:
    """A placement as written.

    Args:
        of: the box, or the box of the output; None: the network.
        nodes: the nodes that it may run on; None: not declared.
        apart: boxes that are to run on other nodes; of a network, each on another one.
        line: where it is written.
    """

    of: BoxName | None
    nodes: Selector | None = None
    apart: tuple[Text, ...] = ()
    line: int = 0


def read_placement(fields: Fields, of: BoxName | None) -> Placement:
    """Read the key `placement`; mistakes are reported.

    Args:
        fields: the entries of the document, the output or the box.
        of: the box, or the box of the output; None: the network.
    """
    node = fields.mapping(_KEY)
    if node is None:
        return Placement(of)
    inner = Fields(node, f"placement of {fields.what}", fields.report, fields.box)
    inner.line = fields.line_of(_KEY)
    apart = inner.texts("apart") or ()
    if of is None and len(apart) == 1:
        inner.problem(
            f"apart of {inner.what} names one box",
            apart[0].line,
            hint="name at least two; or write it at a box, with the others",
        )
    placement = Placement(of, _read_nodes(inner), apart, inner.line)
    inner.finish()
    return placement


def _read_nodes(fields: Fields) -> Selector | None:
    found = fields.text("nodes")
    if found is None:
        return None
    try:
        return labels.parse_selector(found.value)
    except ValueError as error:
        fields.problem(f"nodes of {fields.what}: {error}", found.line)
        return None


def check_apart(
    placements: Iterable[Placement], boxes: Mapping[str, tuple[str, ...]], report: Report
) -> tuple[tuple[BoxName, BoxName], ...]:
    """The pairs of boxes that are to run on different nodes, sorted; mistakes are reported.

    Args:
        placements: all of the document.
        boxes: each box, valid or not, with the streams that it makes, if these are several.
        report: receives mistakes.
    """
    pairs: set[tuple[BoxName, BoxName]] = set()
    for placement in placements:
        named = [one for one in placement.apart if _is_stream(one, boxes, report)]
        for one, other in _pairs(placement, [BoxName(text.value) for text in named]):
            if one == other:
                report.add(f"{one} cannot run apart from itself", placement.line, box=one)
            elif parts := boxes.get(one, ()):
                message = f"{one} makes several streams: name apart those that are meant"
                report.add(message, placement.line, box=one, choices=parts)
            else:
                pairs.add((min(one, other), max(one, other)))
    return tuple(sorted(pairs))


def _pairs(placement: Placement, names: list[BoxName]) -> Iterable[tuple[BoxName, BoxName]]:
    if placement.of is None:
        return combinations(names, 2)
    return [(placement.of, name) for name in names]


def _is_stream(text: Text, boxes: Mapping[str, tuple[str, ...]], report: Report) -> bool:
    """Whether a name is that of a box with one stream; otherwise reported."""
    parts = boxes.get(text.value)
    if parts is None:
        choices = nearest_first(text.value, tuple(sorted(boxes)))
        report.add(f"apart names no box: {text.value}", text.line, choices=choices)
    elif parts:
        report.add(f"{text.value} is no stream but makes several", text.line, choices=parts)
    return parts == ()
