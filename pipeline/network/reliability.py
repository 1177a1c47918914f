"""`reliability` of a network, an output or a box: how another node goes on when a node fails."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from pipeline.ids import BoxName
from pipeline.names import stream_of_box
from pipeline.network.boxes.traits import traits
from pipeline.network.declared import Declared
from pipeline.network.fields import Fields, Report
from pipeline.network.model import Box
from pipeline.reliability import (
    CHECKPOINT_EVERY_LEAST_MS,
    CHECKPOINT_EVERY_MOST_MS,
    CHECKPOINT_EVERY_MS,
    SECONDARIES,
    SECONDARIES_MAX,
    Mode,
    Recovery,
    Reliability,
    with_active_standbys,
    with_passive_standbys,
)
from pipeline.yaml_reader import YamlMap

RELIABILITY: Final = "reliability"
_EVERY = "checkpoint_every"
_MODES = tuple(mode.value for mode in Mode)
_RECOVERY = "recovery"
_RECOVERIES = tuple(one.value for one in Recovery)


def read_reliability(fields: Fields, of: BoxName | None) -> Declared[Reliability]:
    """Read the key `reliability`: a mode, or a mapping with one; mistakes are reported.

    Args:
        fields: the entries of the document, the output or the box.
        of: the box, or the box of the output; None: the network.
    """
    node, line = fields.node(RELIABILITY), fields.line_of(RELIABILITY)
    if node is None:
        return Declared(of)
    if not isinstance(node, YamlMap):
        mode = _read_mode(fields, RELIABILITY)
        return Declared(of, mode and _of(mode, SECONDARIES, CHECKPOINT_EVERY_MS), line)
    inner = Fields(node, f"{RELIABILITY} of {fields.what}", fields.report, fields.box)
    inner.line = line
    inner.required("mode")
    reliability = _read_parts(inner)
    inner.finish()
    return Declared(of, reliability, line)


def _read_parts(fields: Fields) -> Reliability | None:
    mode = _read_mode(fields, "mode")
    number, every_ms = SECONDARIES, CHECKPOINT_EVERY_MS
    if mode is Mode.AMNESIA or mode is Mode.UPSTREAM_BACKUP:
        _refuse(
            fields,
            "secondaries",
            f"{mode.value} has no secondaries",
            "leave them out: any node that its placement allows may take it over; or write "
            f"mode: {Mode.ACTIVE_STANDBY.value}",
        )
    else:
        number = fields.integer("secondaries", SECONDARIES, low=1, high=SECONDARIES_MAX)
    if mode is None or mode is Mode.PASSIVE_STANDBY:
        low, high = CHECKPOINT_EVERY_LEAST_MS, CHECKPOINT_EVERY_MOST_MS
        every_ms = fields.duration_between(_EVERY, low=low, high=high) or CHECKPOINT_EVERY_MS
    else:
        _refuse(
            fields,
            _EVERY,
            f"{mode.value} copies no checkpoint",
            f"leave it out, or write mode: {Mode.PASSIVE_STANDBY.value}",
        )
    recovery = _read_recovery(fields)
    return mode and replace(_of(mode, number, every_ms), recovery=recovery)


def _read_recovery(fields: Fields) -> Recovery | None:
    """None: not declared, or invalid (reported)."""
    word = fields.choice(_RECOVERY, _RECOVERIES, "")
    return Recovery(word) if word else None


def check_amnesia(
    declared: Iterable[Declared[Reliability]], boxes: Sequence[Box], report: Report
) -> None:
    """Report boxes with state that may leave results out although others with state read them.

    Those would compute wrong results: a box knows what its input lacks no more than a reader does.

    Args:
        declared: of the boxes and the outputs.
        boxes: in topological order.
        report: receives mistakes.
    """
    stateful = {box.name for box in boxes if traits(box).stateful}
    for one in declared:
        if one.of in stateful and one.value is not None and one.value.mode is Mode.AMNESIA:
            reader = _with_state_behind(one.of, boxes)
            if reader is not None:
                message = (
                    f"box {one.of} cannot have {RELIABILITY}: {Mode.AMNESIA.value}, since "
                    f"{reader.kind} {reader.name} keeps state of its results"
                )
                hint = (
                    "results of a box with state are wrong if its input lacks some: write "
                    f"{Mode.AMNESIA.value} at {reader.name}, and another mode here"
                )
                report.add(message, one.line, box=one.of, hint=hint)


def _with_state_behind(name: BoxName, boxes: Sequence[Box]) -> Box | None:
    """The first box with state that reads a box, directly or through others; None: none does."""
    reached = {stream_of_box(name)}
    for box in boxes:
        if reached.intersection(box.inputs):
            if traits(box).stateful:
                return box
            reached.add(stream_of_box(box.name))
    return None


def _of(mode: Mode, secondaries: int, every_ms: int) -> Reliability:
    match mode:
        case Mode.AMNESIA | Mode.UPSTREAM_BACKUP:
            return Reliability(mode)
        case Mode.PASSIVE_STANDBY:
            return with_passive_standbys(secondaries, every_ms)
        case Mode.ACTIVE_STANDBY:
            return with_active_standbys(secondaries)


def _refuse(fields: Fields, key: str, why: str, hint: str) -> None:
    """Report a key that has no meaning in this mode, if it is there."""
    fields.known.append(key)
    if fields.has(key):
        fields.problem(f"{fields.what}: {why}", fields.line_of(key), hint=hint)


def _read_mode(fields: Fields, key: str) -> Mode | None:
    """None: missing, or invalid (reported)."""
    found = fields.text(key)
    if found is None:
        return None
    word = fields.choice(key, _MODES, "")
    return Mode(word) if word else None
