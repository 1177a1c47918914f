"""The display of a running example as text. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.counting import counted
from pipeline.ids import FragmentName, Millis, TopicName
from pipeline.planner.plan import Plan

NEWEST_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Reader:
    """A fragment that reads an arrow, and its lag in records; None: unknown."""

    fragment: FragmentName
    lag: int | None


@dataclass(frozen=True, slots=True)
class Arrow:
    """A topic that carries a stream of the network; `records` since the run began."""

    topic: TopicName
    records: int
    per_second: float
    readers: tuple[Reader, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of the running network at one time.

    Args:
        at_ms: the time.
        fed: number of records in the external topics.
        statuses: the last reported status, by fragment.
    """

    at_ms: Millis
    fed: Mapping[TopicName, int]
    statuses: Mapping[FragmentName, FragmentStatus]


@dataclass(frozen=True, slots=True)
class View:
    """The contents of the screen."""

    headline: str
    graph: str
    arrows: tuple[Arrow, ...]
    newest: tuple[str, ...]
    troubles: tuple[str, ...]


def arrows(plan: Plan, before: Observation | None, now: Observation) -> tuple[Arrow, ...]:
    """The arrows of a plan, external ones first, then in the order of the fragments."""
    written = {fragment.output.topic: fragment.name for fragment in plan.fragments}
    external = dict.fromkeys(
        source.topic
        for fragment in plan.fragments
        for source in fragment.inputs
        if source.topic not in written
    )
    found = []
    for topic in (*external, *written):
        records = _records(topic, written, now)
        passed_s = (now.at_ms - before.at_ms) / 1_000 if before else 0.0
        more = records - _records(topic, written, before) if before else 0
        readers = tuple(
            Reader(fragment.name, _lag(now.statuses.get(fragment.name), topic))
            for fragment in plan.fragments
            if any(source.topic == topic for source in fragment.inputs)
        )
        found.append(Arrow(topic, records, max(0, more) / passed_s if passed_s else 0.0, readers))
    return tuple(found)


def troubles(now: Observation) -> tuple[str, ...]:
    """Problems, one line each, with the node's own messages."""
    found = []
    for name, status in sorted(now.statuses.items()):
        if status.state not in {LaneState.RUNNING, LaneState.STARTING, LaneState.PENDING}:
            error = f": {status.last_error}" if status.last_error else ""
            found.append(f"{name} is {status.state.value}{error}")
        if status.dead_letters:
            found.append(f"{name} has {counted(status.dead_letters, 'dead letter')}")
    return tuple(found)


def as_lines(view: View) -> tuple[str, ...]:
    """Everything that changes: all but the graph."""
    lines = [view.headline, ""]
    width = max((len(arrow.topic) for arrow in view.arrows), default=0)
    lines.append(f"{'ARROW'.ljust(width)}  {'RECORDS':>9}  {'PER S':>7}  READ BY (BEHIND)")
    for arrow in view.arrows:
        readers = ", ".join(
            f"{r.fragment} ({'-' if r.lag is None else f'{r.lag:,}'})" for r in arrow.readers
        )
        counts = f"{arrow.records:>9,}  {arrow.per_second:>7,.0f}"
        lines.append(f"{arrow.topic.ljust(width)}  {counts}  {readers}".rstrip())
    lines += ["", *(view.newest[-NEWEST_SHOWN:] or ("the first window has not closed yet",))]
    if view.troubles:
        lines += ["", *(f"! {trouble}" for trouble in view.troubles)]
    return tuple(lines)


def _records(topic: TopicName, written: Mapping[TopicName, FragmentName], now: Observation) -> int:
    """The number of records of an arrow; for a fragment's output, the number that it reports."""
    if topic not in written:
        return now.fed.get(topic, 0)
    status = now.statuses.get(written[topic])
    return status.records_out if status else 0


def _lag(status: FragmentStatus | None, topic: TopicName) -> int | None:
    return dict(status.inputs).get(topic) if status else None
