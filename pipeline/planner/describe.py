"""A fragment as facts in the user's words, for comparison and display."""

from collections.abc import Iterator
from dataclasses import replace

from pipeline import durations, sizes
from pipeline.labels import EVERY_NODE, format_selector
from pipeline.network.boxes.traits import Keeps
from pipeline.network.model import ExternalStream, KeyFormat, Limit, StartAt
from pipeline.network.types import Column, EnumForm
from pipeline.planner.boxes.catalogue import facts
from pipeline.planner.boxes.words import Facts
from pipeline.planner.columns import pruned
from pipeline.planner.digest import decoding
from pipeline.planner.instants import instant
from pipeline.planner.plan import DerivedStream, Fragment, FragmentInput
from pipeline.priority import Priority
from pipeline.reliability import UPSTREAM_BACKUP, Recovery


def describe(fragment: Fragment) -> Facts:
    """Label and text of everything that a user can change about a fragment; labels differ."""
    return tuple(_facts(fragment))


def differences(old: Fragment, new: Fragment) -> tuple[str, ...]:
    """The differences, one line each, in the order of the new fragment; removed facts come last."""
    before, after = dict(describe(old)), dict(describe(new))
    changed = [
        f"changed: {label} `{before[label]}` → `{text}`"
        if label in before
        else f"new: {label} `{text}`"
        for label, text in after.items()
        if before.get(label) != text
    ]
    gone = [f"gone: {label} `{text}`" for label, text in before.items() if label not in after]
    return (*changed, *gone)


def state_differences(old: Fragment, new: Fragment) -> tuple[str, ...]:
    """The differences in a state's inputs and boxes, and in the boxes behind it."""
    before, after = _as_state(old), _as_state(new)
    return (*differences(before, after), *_decoding_differences(before, after, forms=False))


def _as_state(fragment: Fragment) -> Fragment:
    """A fragment with constant settings, as far as they are not part of its state."""
    # Only waiting rows have the ids that their results will have.
    ids = fragment.identified and fragment.traits.keeps is Keeps.ROWS
    fragment = pruned(fragment)
    return replace(
        fragment,
        pace_ms=0,
        state_limit_bytes=None,
        nodes=EVERY_NODE,
        apart=(),
        reliability=UPSTREAM_BACKUP,
        recovery=Recovery.PRECISE,
        priority=Priority.NORMAL,
        availability=None,
        inputs=tuple(
            replace(one, tentative=ids and one.tentative) if isinstance(one, DerivedStream) else one
            for one in fragment.inputs
        ),
        output=replace(fragment.output, corrections=ids, tentative=False),
    )


def decoding_differences(old: Fragment, new: Fragment) -> tuple[str, ...]:
    """The differences in the decoding of columns that are read, also those that fit any state."""
    return _decoding_differences(pruned(old), pruned(new), forms=True)


def _decoding_differences(before: Fragment, after: Fragment, *, forms: bool) -> tuple[str, ...]:
    streams = {stream.name: stream for stream in before.inputs}
    found = (
        _decoded_otherwise(streams[stream.name], stream, forms=forms)
        for stream in after.inputs
        if stream.name in streams
    )
    return tuple(filter(None, found))


def _decoded_otherwise(old: FragmentInput, new: FragmentInput, *, forms: bool) -> str:
    """The columns that are decoded differently, although their types are equal; "": none.

    `forms`: also those whose enum has other symbols, whether or not a state depends on them.
    """
    before = decoding(old)
    changed = {name for name, how in decoding(new).items() if before.get(name) != how}
    columns = {column.name: column for column in old.columns}
    if forms:
        changed |= {c.name for c in new.columns if c.name in columns and columns[c.name] != c}
    names = [
        _decoded_column(columns[column.name], column)
        for column in new.columns
        if column.name in changed and str(columns.get(column.name)) == str(column)
    ]
    return f"changed: how columns of {new.name} are decoded: {', '.join(names)}" if names else ""


def _decoded_column(old: Column, new: Column) -> str:
    """The name of a column, with the symbols that its enum gains or loses."""
    if not isinstance(old.form, EnumForm) or not isinstance(new.form, EnumForm):
        return new.name
    had, has = old.form.symbols, new.form.symbols
    changes = {
        "gains": [symbol for symbol in has if symbol not in had],
        "loses": [symbol for symbol in had if symbol not in has],
    }
    parts = [f"{verb} {', '.join(symbols)}" for verb, symbols in changes.items() if symbols]
    return f"{new.name} ({'; '.join(parts)})" if parts else new.name


def start_text(start: StartAt) -> str:
    """The start position of a first start, as in the document."""
    return start.position if start.at_ms is None else instant(start.at_ms)


def key_text(stream: DerivedStream) -> str:
    """A derived stream's key, for display."""
    if not stream.key:
        return "none declared"
    otherwise = stream.key_format is not KeyFormat.AVRO
    return f"({', '.join(stream.key)})" + (f" as {stream.key_format.value}" if otherwise else "")


def limit_text(limit: Limit) -> str:
    """A limit of dead letters, for display."""
    within = "" if limit.within_ms is None else f" within {durations.format(limit.within_ms)}"
    return f"stop above {limit.most}{within}"


def _facts(fragment: Fragment) -> Iterator[tuple[str, str]]:
    for box in fragment.boxes:
        yield f"box {box.name}", f"{box.kind} of {', '.join(box.inputs)}"
        for label, text in facts(box):
            yield f"{label} of {box.name}", text
    for stream in fragment.inputs:
        yield from _input_facts(stream)
    for limit in fragment.limits:
        yield f"dead_letters of {limit.of}", limit_text(limit)
    if fragment.pace_ms:
        yield "pace", durations.format(fragment.pace_ms)
    if fragment.state_limit_bytes is not None:
        yield "state_limit", sizes.format(fragment.state_limit_bytes)
    if fragment.nodes:
        yield "nodes", format_selector(fragment.nodes)
    if fragment.apart:
        yield "apart from", ", ".join(fragment.apart)
    yield "reliability", str(fragment.reliability)
    yield "recovery", fragment.recovery.value
    yield "priority", fragment.priority.value
    yield from _availability_facts(fragment)
    output = fragment.output
    yield "output topic", output.topic
    yield "output key", key_text(output)
    yield "output event time column", output.event_time_column or "none"
    for column in output.columns:
        yield f"output column {column.name}", str(column)[len(column.name) + 1 :]
    names = fragment.names
    yield "owner", names.network.participant
    yield "network", names.network.name


def _availability_facts(fragment: Fragment) -> Iterator[tuple[str, str]]:
    yield "availability", str(fragment.availability or "none")
    if fragment.tentative_topic is not None:
        yield "topic of tentative results", fragment.tentative_topic
    yield "ids of results", "yes" if fragment.identified else "no"


def _input_facts(stream: FragmentInput) -> Iterator[tuple[str, str]]:
    name = stream.name
    yield f"topic of {name}", stream.topic
    if isinstance(stream, ExternalStream):
        yield f"event time of {name}", stream.event_time.text
        yield f"lateness of {name}", durations.format(stream.lateness_ms)
        yield f"idle_after of {name}", durations.format(stream.idle_after_ms)
        yield f"silence of {name}", stream.silence.value
        yield f"load of {name}", stream.load.value
        yield f"ahead of {name}", durations.format(stream.ahead_ms)
        yield f"start of {name}", start_text(stream.start)
    else:
        yield f"key of {name}", key_text(stream)
        read = "by forks, too" if stream.tentative else "no"
        yield f"tentative results of {name}", read
    for column in stream.columns:
        yield f"column {column.name} of {name}", str(column)[len(column.name) + 1 :]
