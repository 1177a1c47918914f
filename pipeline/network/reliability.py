"""`reliability` of a network, an output or a box: how another node goes on when a node fails."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.ids import BoxName
from pipeline.network.fields import Fields, Report
from pipeline.network.yaml_reader import YamlMap
from pipeline.reliability import SECONDARIES, SECONDARIES_MAX, Mode, Reliability

_KEY = "reliability"
_MODES = tuple(mode.value for mode in Mode)
_LATER = ("amnesia", "passive_standby")
"""Modes that are designed but not implemented in this version."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A reliability as written.

    Args:
        of: the box, or the box of the output; None: the network.
        reliability: None: not declared, or invalid (reported).
        line: where it is written.
    """

    of: BoxName | None
    reliability: Reliability | None = None
    line: int = 0


def read_reliability(fields: Fields, of: BoxName | None) -> Declared:
    """Read the key `reliability`: a mode, or a mapping with one; mistakes are reported.

    Args:
        fields: the entries of the document, the output or the box.
        of: the box, or the box of the output; None: the network.
    """
    node, line = fields.node(_KEY), fields.line_of(_KEY)
    if node is None:
        return Declared(of)
    if not isinstance(node, YamlMap):
        mode = _read_mode(fields, _KEY)
        secondaries = SECONDARIES if mode is Mode.ACTIVE_STANDBY else 0
        return Declared(of, Reliability(mode, secondaries) if mode else None, line)
    inner = Fields(node, f"{_KEY} of {fields.what}", fields.report, fields.box)
    inner.line = line
    inner.required("mode")
    reliability = _read_parts(inner)
    inner.finish()
    return Declared(of, reliability, line)


def _read_parts(fields: Fields) -> Reliability | None:
    mode = _read_mode(fields, "mode")
    if mode is not Mode.UPSTREAM_BACKUP:
        number = fields.integer("secondaries", SECONDARIES, low=1, high=SECONDARIES_MAX)
        return Reliability(mode, number) if mode else None
    fields.known.append("secondaries")
    if fields.has("secondaries"):
        fields.problem(
            f"{fields.what}: {mode.value} has no secondaries",
            fields.line_of("secondaries"),
            hint="leave them out: any node that its placement allows may take it over; or write "
            f"mode: {Mode.ACTIVE_STANDBY.value}",
        )
    return Reliability(mode)


def _read_mode(fields: Fields, key: str) -> Mode | None:
    """None: missing, or invalid (reported)."""
    found = fields.text(key)
    if found is None:
        return None
    if found.value in _LATER:
        message = f"{key} of {fields.what}: {found.value} is not supported yet"
        fields.problem(message, found.line, hint=f"write {' or '.join(_MODES)}")
        return None
    word = fields.choice(key, _MODES, "")
    return Mode(word) if word else None


def check_reliabilities(
    boxes: Iterable[Declared],
    outputs: Iterable[Declared],
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
    own = {one.of for one in boxes if one.reliability is not None}
    for one in outputs:
        if one.of is None or one.reliability is None:
            continue
        box = BoxName(routes.get(one.of, one.of))
        if box in own:
            message = f"box {box} has a reliability of its own: write it there or here"
            report.add(message, one.line, box=one.of)
