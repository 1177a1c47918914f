"""`medusa replay --as-corrections`: what a topic says, and what it should say."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pipeline.cli.connections import Connections
from pipeline.cli.letters import label
from pipeline.cli.replaying import Subject, kept_of
from pipeline.cli.streams import deployed_plans
from pipeline.counting import counted
from pipeline.errors import RefusedError, RetryError
from pipeline.replay.corrections import Change, Correction, Standing, standing
from pipeline.replay.period import Period
from pipeline.replay.ranges import whole


def check_agreed(what: Subject, connections: Connections) -> None:
    """That everybody who reads the fragment's output takes corrections.

    Raises:
        RefusedError: the output does not say so, or a fragment reads it: what it has computed from
            a record is final.
    """
    output = what.fragment.output
    place = f"topic {output.topic}"
    if not output.corrections:
        raise RefusedError(
            "the output takes no corrections: its records carry no ids",
            place=place,
            hint=f"write `corrections: true` at the output {output.name}, if its readers let a "
            "later record with an id take the place of the earlier one; or replay into a topic of "
            "its own.",
        )
    plans = deployed_plans(connections)
    readers = [
        label(fragment)
        for plan in plans
        for fragment in plan.fragments
        if output.topic in {stream.topic for stream in fragment.inputs}
    ]
    if readers:
        raise RefusedError(
            f"the output cannot be corrected while a fragment reads it: {', '.join(readers)}",
            place=place,
            hint="a fragment would count a correction as one more record: replay into a topic of "
            "its own.",
        )


def stands(what: Subject, period: Period, connections: Connections) -> dict[bytes, Standing]:
    """What the output topic says about a period.

    Raises:
        RefusedError: it no longer holds all of it, or holds records without ids.
        RetryError: results of the period may be in a transaction that does not end.
    """
    output = what.fragment.output
    if not connections.topics.await_decided(output.topic):
        raise RetryError(
            "a transaction in the topic stays open",
            place=f"topic {output.topic}",
            hint="run it again",
        )
    kept = kept_of(output, period.results_from_ms, connections)
    read = whole(kept, incomplete=False)
    reader = connections.reader()
    reader.assign({output.topic: {one.partition: one.start for one in read}})
    ends = {output.topic: {one.partition: one.end for one in read}}
    return standing(reader.read_to(ends), period)


def data(topic: str, reads: Mapping[str, Any], found: list[Correction]) -> dict[str, Any]:
    """What was or would be corrected."""
    counts = Counter(one.change for one in found)
    return {**reads, "into": topic, **{change.value: counts[change] for change in Change}}


def words(topic: str, found: list[Correction], compared: int, *, done: bool) -> list[str]:
    """The same for people."""
    counts = Counter(one.change for one in found)
    parts = ", ".join(f"{counts[change]} {change.value}" for change in Change)
    lines = [f"  compared with {counted(compared, 'result')} in {topic}: {parts}"]
    if not found:
        lines.append("nothing has to be corrected")
    elif done:
        lines.append(f"{counted(len(found), 'correction')} written to {topic}")
    return lines
