"""A plan as stable text: fragments, their inputs, state, outputs and guarantees.

The text is for people and for review as a difference between two files; programs read the plan.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from pipeline import durations, sizes
from pipeline.availability import Policy
from pipeline.counting import counted
from pipeline.ids import FragmentName
from pipeline.labels import format_selector
from pipeline.network.boxes.shape import reach_ms
from pipeline.network.boxes.traits import Keeps, Lateness
from pipeline.network.model import ExternalStream, KeyFormat, Load, Silence
from pipeline.planner.boxes.catalogue import facts, keeps
from pipeline.planner.describe import start_text
from pipeline.planner.failures import node_failures, planned_failures
from pipeline.planner.plan import DerivedStream, Fragment, FragmentInput, NewTopic, Plan
from pipeline.priority import Priority
from pipeline.reliability import Mode, Recovery

_LABEL = 12
_ORDER: Mapping[Keeps, str] = {
    Keeps.NOTHING: "as in each input partition",
    Keeps.GROUPS: "by event time for each key",
    Keeps.ROWS: "not promised",
}

_POLICIES: Mapping[Policy, str] = {
    Policy.PROCESS: "after the first of them, each comes as soon as the present input allows",
    Policy.DELAY: "each of them comes after the whole bound",
}

_PRIORITIES: Mapping[Priority, str] = {
    Priority.HIGH: "high: if the nodes have no room for all fragments, it runs instead of others",
    Priority.LOW: "low: if the nodes have no room for all fragments, others run instead of it",
}


Measured = Mapping[FragmentName, Sequence[str]]
"""What was measured of fragments that are deployed, in words: lines to print beside the plan."""


def explain(plan: Plan, measured: Measured = MappingProxyType({})) -> str:
    """The plan in words; equal plans give equal text. Ends with a line feed.

    Args:
        plan: of the network.
        measured: printed below the reliability of each fragment.
    """
    return "\n".join(line.rstrip() for line in _lines(plan, measured)) + "\n"


def _lines(plan: Plan, measured: Measured) -> Iterator[str]:
    count, made = len(plan.fragments), sum(not topic.when_needed for topic in plan.topics)
    fragments, topics = counted(count, "fragment"), counted(made, "topic")
    yield f"network {plan.network} of {plan.network.participant}: {fragments}, {topics}"
    for note in plan.notes:
        yield f"  {note}"
    for fragment in plan.fragments:
        yield ""
        yield from _fragment(fragment, plan, measured.get(fragment.name, ()))
    yield ""
    yield from _topics(plan)


def _fragment(fragment: Fragment, plan: Plan, measured: Sequence[str]) -> Iterator[str]:
    yield f"fragment {fragment.name}"
    yield "  reads"
    for stream in fragment.inputs:
        yield from _input(stream, alone=len(fragment.inputs) == 1)
    if len(fragment.inputs) > 1:
        inputs = ", ".join(stream.name for stream in fragment.inputs)
        yield f"    event time: the least of {inputs}, of those that are not idle"
    yield "  boxes"
    for box in fragment.boxes:
        yield f"    {box.name}: {box.kind} of {', '.join(box.inputs)}"
        for label, text in facts(box):
            yield f"      {label}: {text}"
    yield "  writes"
    yield from _output(fragment)
    stateful = fragment.stateful_box
    yield from _fact("keeps", keeps(stateful) if stateful else "nothing between batches")
    if fragment.state_limit_bytes is not None:
        limit = sizes.format(fragment.state_limit_bytes)
        yield from _fact("state_limit", f"{limit}: with so much state no more input is read")
    if fragment.pace_ms:
        pace = durations.format(fragment.pace_ms)
        yield from _fact("pace", f"{pace}, the least time between two batches")
    yield from _placement(fragment)
    yield from _fact("reliability", _reliability(fragment))
    yield from _recovery(fragment, plan)
    yield from _availability(fragment)
    for number, line in enumerate(measured):
        yield from _fact("" if number else "measured", line)
    yield from _failures(fragment, plan)
    if fragment.priority is not Priority.NORMAL:
        yield from _fact("priority", _PRIORITIES[fragment.priority])
    if fragment.identified:
        yield from _fact("ids", "each result has one, as a header")
    yield from _guarantees(fragment)
    names = fragment.names
    yield from _fact("group", f"{names.group} (a mirror for lag tools)")
    yield from _fact("transactions", names.stable.transactional_id)


def _placement(fragment: Fragment) -> Iterator[str]:
    """Which nodes may run it, and apart from what."""
    if fragment.nodes:
        nodes = format_selector(fragment.nodes)
        yield from _fact("nodes", f"{nodes}: it runs on nodes with these labels")
    if fragment.apart:
        yield from _fact("apart from", f"{', '.join(fragment.apart)}, if another node may claim it")


def _reliability(fragment: Fragment) -> str:
    """What another node does when that of a fragment fails, and the price of it."""
    found, has_state = fragment.reliability, fragment.stateful_box is not None
    if found.mode is Mode.AMNESIA:
        return f"{found}: {_amnesia(fragment)}"
    if found.mode is Mode.UPSTREAM_BACKUP:
        then = "builds its state from the log" if has_state else "goes on from its positions"
        return f"{found}: if its node fails, another one {then}; costs nothing before"
    if not has_state:
        return f"{found}: it has no state to follow; a secondary has it planned and rehearsed"
    if found.mode is Mode.PASSIVE_STANDBY:
        return (
            f"{found}: if its node fails, a secondary goes on from the newest copy of its "
            "checkpoint and reads what came since; costs a copy of each change of its state, in "
            "store.url and on each secondary"
        )
    return (
        f"{found}: if its node fails, a secondary goes on in about a second; costs its processor "
        "time and memory once more on each secondary"
    )


def _amnesia(fragment: Fragment) -> str:
    """What is left out after a failure, and for how long."""
    if fragment.stateful_box is None:
        return "it has no state to lose; another node goes on from its positions"
    longest_ms = max(reach_ms(fragment.shape, stream.name) for stream in fragment.inputs)
    withheld = "incomplete" if not fragment.shape.waits else "withheld"
    return (
        "if its state is lost, another node begins without state at the newest records; results "
        f"that the records before could touch are {withheld}, for up to "
        f"{durations.format(longest_ms)} of event time; costs nothing before"
    )


def _recovery(fragment: Fragment, plan: Plan) -> Iterator[str]:
    """What readers see of a failure, and the price of it, if a fragment of the network asks."""
    if all(one.recovery is Recovery.PRECISE for one in plan.fragments):
        return
    if fragment.recovery is Recovery.ROLLBACK:
        yield from _fact("recovery", "rollback: results are visible before their transaction")
        yield from _fact("", "costs a second transaction in each batch, beside its execution")
        return
    topics = {stream.topic for one in plan.fragments for stream in one.inputs}
    read = fragment.output.topic in topics
    why = ", since the network reads its results" if read else ""
    yield from _fact("recovery", f"precise{why}: results are visible with their transaction")


def _availability(fragment: Fragment) -> Iterator[str]:
    """After which delay there are tentative results; or why there are none, despite a bound."""
    bound = fragment.availability
    if bound is None:
        return
    after = durations.format(bound.bound_ms)
    if bound.policy is Policy.SUSPEND:
        yield from _fact("availability", f"{bound}: never tentative, whatever is missing")
    elif fragment.tentative_topic is None:
        box = fragment.stateful_box or fragment.boxes[-1]
        only = f"without an input, {box.kind} {box.name} only adds results"
        yield from _fact("availability", f"{bound}: never tentative: {only}")
    else:
        topic = fragment.tentative_topic
        what = f"results that are delayed by more than {after} are tentative, in {topic}"
        yield from _fact("availability", f"{bound}: {what}")
        yield from _fact("", _POLICIES[bound.policy])
        how = "also" if fragment.shape.waits else "only if"
        for name in sorted(fragment.read_early):
            yield from _fact("", f"{how} computed of tentative results of {name}")


def _failures(fragment: Fragment, plan: Plan) -> Iterator[str]:
    """How many nodes and brokers may fail at once."""
    nodes = node_failures(fragment)
    if nodes is None:
        text = "all nodes but one: it has no state to build"
    else:
        lost = "losing" if fragment.reliability.mode is Mode.AMNESIA else "building"
        text = f"{counted(nodes, 'node')} without {lost} its state, all but one in all"
    yield from _fact("may fail", text)
    if (found := planned_failures(fragment, plan)) is not None:
        yield from _fact("", f"brokers, with the topics as planned: {found.words}")


def _input(stream: FragmentInput, *, alone: bool) -> Iterator[str]:
    if isinstance(stream, DerivedStream):
        yield f"    {stream.name}: topic {stream.topic}, written by this network"
        late = "nothing is late" if alone else "late is only what comes after it was idle"
        yield f"      event time: the Kafka timestamp, moved by boundaries; {late}"
        return
    yield f"    {stream.name}: topic {stream.topic}, from {start_text(stream.start)}"
    late, ahead = durations.format(stream.lateness_ms), durations.format(stream.ahead_ms)
    event_time = " ".join(stream.event_time.text.split())
    yield f"      event time: {event_time}, at most {late} late and {ahead} ahead of Kafka's"
    if stream.load is Load.FIRST:
        yield "      at each start: read to its end before event time moves"
    silent = durations.format(stream.idle_after_ms)
    yield f"      silent for {silent}: {_silence(stream, alone=alone)}"


def _silence(stream: ExternalStream, *, alone: bool) -> str:
    if stream.silence is Silence.MISSING:
        return "missing, event time stands still"
    return "idle, event time goes on with " + ("the clock" if alone else "others, or the clock")


def _output(fragment: Fragment) -> Iterator[str]:
    output = fragment.output
    yield f"    {output.name}: topic {output.topic}, {_partitions(output.partitions)}"
    for column in output.columns:
        yield f"      {column}{_marks(column.name, output)}"
    if output.event_time_column is None:
        yield f"      event time: {_event_time(fragment)}, as Kafka timestamp"
    if not output.key:
        yield f"      key: {'as in the input' if fragment.traits.from_one_row else 'none'}"


def _marks(column: str, output: DerivedStream) -> str:
    key = ", key" if column in output.key else ""
    if key and output.key_format is not KeyFormat.AVRO:
        key += f" as {output.key_format.value}"
    event_time = ", event time" if column == output.event_time_column else ""
    return key + event_time


def _event_time(fragment: Fragment) -> str:
    if fragment.traits.from_one_row:
        return "that of the input"
    rows = fragment.traits.keeps is Keeps.ROWS
    return "the later of the two rows'" if rows else "the end of the window"


def _guarantees(fragment: Fragment) -> Iterator[str]:
    exact = "stable records are exact: none lost, none twice, final once written"
    if fragment.reliability.mode is Mode.AMNESIA and fragment.stateful_box is not None:
        exact = "stable records are exact and final once written; those in a gap are left out"
    again = (
        "no record is lost; after a failure some may come twice, with one id; final once written"
    )
    rolls_back = fragment.recovery is Recovery.ROLLBACK
    yield from _fact("guarantees", again if rolls_back else exact)
    elements = ", and as in the array" if fragment.traits.explodes else ""
    yield from _fact("", f"order: {_ORDER[fragment.traits.keeps]}{elements}")
    yield from _fact("", _when_missing(fragment))
    bad = "records that cannot be decoded or evaluated"
    external = any(isinstance(stream, ExternalStream) for stream in fragment.inputs)
    judged = fragment.traits.lateness is not Lateness.NONE
    late = ", or that came too late," if judged and external else ""
    yield from _fact("", f"{bad}{late} go to {fragment.names.dead_letters}")


def _when_missing(fragment: Fragment) -> str:
    box = fragment.stateful_box
    if box is None or not fragment.shape.waits:
        return "a missing input only holds results back"
    if fragment.may_be_tentative:
        return f"a missing input holds stable results of {box.kind} {box.name} up: they wait"
    return f"a missing input holds {box.kind} {box.name} up: it waits"


def _fact(label: str, text: str) -> Iterator[str]:
    yield f"  {label:<{_LABEL}} {text}"


def _partitions(count: int) -> str:
    return f"{count} {'partition' if count == 1 else 'partitions'}"


def _topics(plan: Plan) -> Iterator[str]:
    width = max((len(topic.name) for topic in plan.topics), default=0)
    for later, what, made in (
        (False, "topics", "created where missing"),
        (True, "topics for dead letters that are sent again", "created when the first are"),
    ):
        yield f"{what} ({made if plan.auto_create else 'not created: auto_create is false'})"
        for topic in plan.topics:
            if topic.when_needed is later:
                yield f"  {topic.name:<{width}}  {_topic(topic)}"


def _topic(topic: NewTopic) -> str:
    settings = " ".join(f"{name}={value}" for name, value in topic.config)
    external = "external, " if topic.external else ""
    replicas = f"{topic.replication} {'replica' if topic.replication == 1 else 'replicas'}"
    by_need = ", kept as long as a fragment needs it" if topic.by_need else ""
    return f"{external}{_partitions(topic.partitions)}, {replicas}, {settings}{by_need}"
