"""Findings about the fragments of a network, from what their nodes last reported. Pure."""

from collections.abc import Iterator
from typing import Final

from pipeline import durations
from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.counting import counted
from pipeline.doctor.facts import Finding, ObservedNetwork, ObservedQueue, Verdict
from pipeline.errors import ExitCode
from pipeline.heartbeats.steps import Doing, StepAge
from pipeline.ids import FragmentName
from pipeline.priority import Priority

STALLED_MS: Final = 30_000
"""Normal bound on the time without the end of a batch."""
HELD_MS: Final = 60_000
"""Normal bound on the distance of inputs in event time, and on its duration."""
_STEPS_ASIDE: Final = (
    "an input steps aside when it was silent for idle_after; with `silence: missing`, while a "
    "partition cannot be reached, or while a transaction is open, it does not."
)
_REFUSED: Final = (
    "records that are refused, or older than others before them, do not move event time: `medusa "
    "dlq list` counts the refused ones."
)
_LATE: Final = (
    "event time went on without them: with a larger `lateness` or `idle_after` of the stream, or "
    "`silence: missing`, it waits. `medusa replay` computes their results."
)
_FUTURE: Final = (
    "records of the future have moved it, and others are late until the clock is there. A smaller "
    "`ahead` of the stream refuses such records if their Kafka timestamps are right; where a "
    "producer's clock sets both, the topic needs `message.timestamp.type=LogAppendTime`, too. "
    "To go on at once, `medusa destroy` the network and deploy it again, with `start: latest` if "
    "they would be read again; otherwise `medusa replay` computes the results later."
)
_LONG: Final = (
    "no other node takes it over for that: it would take as long there. `medusa logs {fragment}` "
    "shows the messages of its node."
)
_HANGS: Final = (
    "no other node takes it over for that: it may hang there, too. `medusa logs {fragment}` shows "
    "the messages of its node; a restart of that node, or `medusa move`, starts it again."
)
_AT_REST: Final = {
    LaneState.WAITING: (
        Verdict.DOUBTFUL,
        ExitCode.DONE,
        "it goes on by itself when what it waits for is there.",
    ),
    LaneState.RESTARTING: (
        Verdict.DOUBTFUL,
        ExitCode.DONE,
        "it is tried again; `medusa logs {fragment}` shows the messages of its node.",
    ),
    LaneState.FAILED: (
        Verdict.WRONG,
        ExitCode.BAD_INPUT,
        "when the cause is mended, `medusa pause {fragment}` and `medusa resume {fragment}`.",
    ),
}


def of_fragments(network: ObservedNetwork) -> Iterator[Finding]:
    """Findings about its fragments: paused, not running, behind, late, or waiting for an input."""
    name = f"network {network.name}"
    for fragment in network.paused:
        yield _paused(fragment, network, name)
    for fragment, queue in network.queued.items():
        yield _queued(fragment, queue, network, name)
    for status in network.writers.values():
        if status.fragment not in network.paused:
            yield from _not_running(status, name)
        yield from _unreachable(status, name)
        yield from _stalled(status, name)
        yield from _late(status, name)
        yield from _held_back(status, name)
    for fragment, step in network.overdue.items():
        yield _overdue(fragment, step, network, name)
    for fragment, expiring in network.expiring.items():
        place = f"fragment {network.name}.{fragment}"
        for message, hint in expiring:
            yield Finding(name, Verdict.DOUBTFUL, f"{fragment}: {message}", place, f"{hint}.")


def _paused(fragment: FragmentName, network: ObservedNetwork, name: str) -> Finding:
    return Finding(
        name,
        Verdict.DOUBTFUL,
        f"{fragment} is paused: its records and its readers wait",
        f"fragment {network.name}.{fragment}",
        f"`medusa resume {network.name.name}.{fragment}`.",
    )


def _queued(
    fragment: FragmentName, queue: ObservedQueue, network: ObservedNetwork, name: str
) -> Finding:
    full = ", ".join(f"{node} ({most})" for node, most in queue.full)
    hint = "start another node, or one of these with more `--most-fragments`; or `medusa pause` a "
    hint += "fragment that is there. It starts by itself when there is room."
    if queue.priority is not Priority.HIGH:
        hint += " A higher `priority` displaces fragments of a lower one."
    return Finding(
        name,
        Verdict.DOUBTFUL,
        f"{fragment} is queued, priority {queue.priority.value}: no place is left on {full}",
        f"fragment {network.name}.{fragment}",
        hint,
    )


def _not_running(status: FragmentStatus, name: str) -> Iterator[Finding]:
    """A fragment that has failed, or waits for something outside."""
    verdict, code, hint = _AT_REST.get(status.state, (Verdict.GOOD, ExitCode.DONE, ""))
    if verdict is Verdict.GOOD:
        return
    why = " ".join(status.last_error.split()) or "its node reports no reason"
    yield Finding(
        name,
        verdict,
        f"{status.fragment} is {status.state.value}: {why}",
        f"fragment {status.network}.{status.fragment}",
        hint.format(fragment=f"{status.network.name}.{status.fragment}"),
        code,
    )


def _unreachable(status: FragmentStatus, name: str) -> Iterator[Finding]:
    """A running fragment some of whose partitions do not answer."""
    if status.state is not LaneState.RUNNING or not status.unreachable:
        return
    yield Finding(
        name,
        Verdict.DOUBTFUL,
        f"{status.fragment} reads on without partitions that cannot be reached: "
        f"{status.unreachable}",
        f"fragment {status.network}.{status.fragment}",
        "their broker does not answer; event time waits for them, and goes on by itself.",
    )


def _stalled(status: FragmentStatus, name: str) -> Iterator[Finding]:
    """A running fragment that has something to do and has ended no batch for long."""
    since_ms = status.stalled_since_ms
    if status.state is not LaneState.RUNNING or since_ms is None:
        return
    if status.reported_at_ms - since_ms < STALLED_MS + status.pace_ms:
        return
    unread = counted(status.lag_records or 0, "record")
    behind = f", with {unread} unread" if status.lag_records else ""
    yield Finding(
        name,
        Verdict.DOUBTFUL,
        f"{status.fragment} has ended no batch for {_span(status.reported_at_ms - since_ms)}"
        f"{behind}",
        f"fragment {status.network}.{status.fragment}",
        "one batch takes that long, or the machine has no processor or memory left: `medusa logs "
        f"{status.network}.{status.fragment}` shows the messages of its node.",
    )


def _overdue(fragment: FragmentName, step: StepAge, network: ObservedNetwork, name: str) -> Finding:
    """A lane that has made no step for long, by the heartbeats of its node."""
    hint = _HANGS if step.doing == Doing.WAIT else _LONG
    return Finding(
        name,
        Verdict.DOUBTFUL,
        f"{fragment}: {step.words}",
        f"fragment {network.name}.{fragment}",
        hint.format(fragment=f"{network.name.name}.{fragment}"),
    )


def _late(status: FragmentStatus, name: str) -> Iterator[Finding]:
    """A running fragment for which many records have been late for long."""
    if status.state is not LaneState.RUNNING or status.late_since_ms is None:
        return
    if status.late_span_ms < HELD_MS:
        return
    ahead = f"event time is {_span(status.ahead_ms)} beyond the clock" if status.ahead_ms else ""
    yield Finding(
        name,
        Verdict.DOUBTFUL,
        f"{status.late_records} of {counted(status.late_read, 'record')} that {status.fragment} "
        f"read in {_span(status.late_span_ms)} were late{f': {ahead}' if ahead else ''}",
        f"fragment {status.network}.{status.fragment}",
        _FUTURE if ahead else _LATE,
    )


def _held_back(status: FragmentStatus, name: str) -> Iterator[Finding]:
    """Event time that has waited for one input for long, and with it results of a state."""
    since_ms = status.held_since_ms
    if status.state is not LaneState.RUNNING or not status.held_by or since_ms is None:
        return
    if status.stalled_since_ms is not None:
        return  # the input may only be unread
    waited_ms, behind_ms = status.reported_at_ms - since_ms, status.held_ms
    part, silent = status.held_partition is not None, status.held_silent_since_ms is not None
    still = behind_ms == 0 and not silent
    if waited_ms < HELD_MS or (behind_ms is not None and behind_ms < HELD_MS and not still):
        return
    behind = "has given no event time" if behind_ms is None else f"is {_span(behind_ms)} behind"
    if still:
        behind = "has records, and none that brings event time"
    yield Finding(
        name,
        Verdict.DOUBTFUL,
        f"event time of {status.fragment} has waited for {status.holder} for "
        f"{_span(waited_ms)}: it {behind}",
        f"fragment {status.network}.{status.fragment}",
        _REFUSED if not silent and (still or part or behind_ms is None) else _STEPS_ASIDE,
    )


def _span(ms: int) -> str:
    return durations.spell(ms // 1000 * 1000)
