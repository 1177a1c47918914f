"""Placement of fragments on two nodes, by their labels."""

from collections.abc import Iterator

import pytest

from brokers.embedded.processes import Child
from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import OwnerRecord
from pipeline.clock import Deadline
from pipeline.ids import FragmentId, FragmentName, Millis, NodeId, StreamName
from pipeline.operations.drain import Drain
from pipeline.planner.inputs import InputFrom
from pipeline.planner.state import Choices, OnChange
from pipeline.system_clock import SystemClock
from tests.system.nodes.feeds import BASE_S, await_windows
from tests.system.support import READING, WINDOWS, Installation, kill, network_id

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

A, B, C, D = "zone_a", "zone_b", "zone_c", "zone_d"
COUNTS = "counts"
SCHEMAS = {"reading.avsc": READING}
WITHIN_S = 120.0
TWO_FILTERS = """
network: both
streams:
  readings: {topic: both-in, schema: reading.avsc, event_time: at}
boxes:
  low: {filter: readings, where: value < 10}
  high: {filter: readings, where: value >= 10}
"""

INSIDE = (
    WINDOWS.replace("outputs:", "  shown: {{filter: counts, where: n > 0{box}}}\noutputs:")
    .replace("outputs: {{counts:", "outputs: {{shown:")
    .rstrip()
    + "\nplacement: {{nodes: zone=c}}\n"
)
"""Windows, and a filter behind them in the same fragment, which may be placed elsewhere."""
SHOWN = "shown"

Nodes = dict[str, Child]


@pytest.fixture(scope="module")
def nodes(medusa: Installation) -> Iterator[Nodes]:
    """Two nodes, with one label each."""
    yield from labelled(medusa, A, B)


@pytest.fixture
def two_more(medusa: Installation) -> Iterator[Nodes]:
    """Two others, of which no test before has drained or ended one."""
    yield from labelled(medusa, C, D)


def labelled(medusa: Installation, *names: str) -> Iterator[Nodes]:
    """Nodes with the last letters of their names as labels, up until the iteration ends."""
    processes = {name: medusa.start_node(name, {"labels": f"zone={name[-1]}"}) for name in names}
    try:
        for name, process in processes.items():
            medusa.await_node(name, process)
        yield processes
    finally:
        for process in processes.values():
            kill(process)


def owner(medusa: Installation, network: str, fragment: str = COUNTS) -> OwnerRecord | None:
    """The owner of a fragment."""
    return medusa.catalog.owners.get(network_id(network), FragmentName(fragment))


def deploy_in(medusa: Installation, name: str, zone: str) -> None:
    """Deploy the windows, for nodes of a zone."""
    placed = f"placement: {{nodes: zone={zone}}}\n"
    medusa.deploy(WINDOWS.format(name=name) + placed, SCHEMAS)


def send(medusa: Installation, name: str, seconds: range) -> None:
    """Send one reading for each second of event time to each of the two partitions."""
    for second in seconds:
        for partition in (0, 1):
            at_ms = Millis(1_000 * (BASE_S + second))
            reading = {"sensor": f"s{partition}", "value": second, "at": at_ms}
            value = medusa.encoded(f"{name}-in-value", READING, reading)
            medusa.send(f"{name}-in", value, partition=partition)
    medusa.producer.flush(10)


def await_owner(medusa: Installation, name: str, node: str, epoch: int) -> None:
    """Wait until a fragment runs on a node, in exactly this epoch."""
    medusa.await_state(name, COUNTS, LaneState.RUNNING, epoch=epoch)
    found = owner(medusa, name)
    assert found is not None
    assert (found.node, found.epoch) == (node, epoch)


@pytest.mark.usefixtures("nodes")
def test_a_deploy_over_two_idle_nodes_uses_both(medusa: Installation) -> None:
    """One fragment each: they cost the same."""
    medusa.deploy(TWO_FILTERS, SCHEMAS)
    for fragment in ("low", "high"):
        medusa.await_state("both", fragment, LaneState.RUNNING)
    owners = [owner(medusa, "both", fragment) for fragment in ("low", "high")]
    assert sorted(one.node for one in owners if one is not None) == [A, B]


def test_a_drained_node_gives_its_fragments_up(medusa: Installation, nodes: Nodes) -> None:
    """And has them again when the other one is drained; each result is there once."""
    name = "drained"
    medusa.deploy(WINDOWS.format(name=name), SCHEMAS)
    medusa.await_state(name, COUNTS, LaneState.RUNNING)
    found = owner(medusa, name)
    assert found is not None
    participant, first = network_id(name).participant, found.node
    (second,) = nodes.keys() - {first}
    send(medusa, name, range(40))
    await_windows(medusa, name, 30, WITHIN_S)
    for epoch, (at, to) in enumerate(((first, second), (second, first)), 2):
        drain = Drain(NodeId(at), participant, medusa.catalog, SystemClock())
        changed, fragments = drain.begin(60)
        assert changed
        assert FragmentId(network_id(name), FragmentName(COUNTS)) in fragments
        deadline = Deadline.after(drain.clock, WITHIN_S, "draining")
        (moved,) = drain.await_moved(fragments, deadline, lambda _: None)
        assert moved.to == to
        await_owner(medusa, name, to, epoch)
        medusa.catalog.drains.undrain(participant, NodeId(at))
        send(medusa, name, range(30 * epoch - 20, 30 * epoch + 10))
        await_windows(medusa, name, 30 * epoch, WITHIN_S)


def test_a_fragment_moves_to_where_it_is_placed(medusa: Installation, nodes: Nodes) -> None:
    """Its results are exact, and no other node claims it when its node has ended."""
    name = "placed"
    deploy_in(medusa, name, "a")
    await_owner(medusa, name, A, 1)
    send(medusa, name, range(40))
    await_windows(medusa, name, 30, WITHIN_S)
    deploy_in(medusa, name, "b")
    await_owner(medusa, name, B, 2)
    send(medusa, name, range(40, 70))
    await_windows(medusa, name, 60, WITHIN_S)

    kill(nodes[B])
    participant = network_id(name).participant
    medusa.wait_for(
        lambda: medusa.catalog.nodes.names(participant) == (A,), "one node is up", within_s=WITHIN_S
    )
    medusa.deploy(WINDOWS.format(name="later"), SCHEMAS)
    await_owner(medusa, "later", A, 1)  # it has read the catalog since
    found = owner(medusa, name)
    assert found is not None
    assert (found.node, found.epoch) == (B, 2)

    deploy_in(medusa, name, "a")
    await_owner(medusa, name, A, 3)
    send(medusa, name, range(70, 100))
    await_windows(medusa, name, 90, WITHIN_S)


@pytest.mark.usefixtures("nodes")
@pytest.mark.usefixtures("two_more")
def test_a_box_inside_a_fragment_runs_on_another_node_and_comes_back(
    medusa: Installation,
) -> None:
    """Its fragment has a state. With what the plan asks for, each result is there once."""
    name = "inside"
    whole, cut = (INSIDE.format(name=name, box=box) for box in ("", ", placement: {nodes: zone=d}"))
    medusa.deploy(whole, SCHEMAS)
    medusa.await_state(name, SHOWN, LaneState.RUNNING)
    send(medusa, name, range(40))
    await_windows(medusa, name, 30, WITHIN_S)

    choices = Choices(inputs={StreamName("counts"): InputFrom.BEGINNING})
    (arrow,) = medusa.compared(cut, SCHEMAS, choices).changes.arrows
    assert (arrow.writer, arrow.reader, arrow.is_new) == (COUNTS, SHOWN, True)
    medusa.deploy(cut, SCHEMAS, choices)
    for fragment, node in ((COUNTS, C), (SHOWN, D)):
        medusa.await_state(name, fragment, LaneState.RUNNING)
        medusa.wait_for(
            lambda at=fragment, on=node: (
                (found := owner(medusa, name, at)) is not None  # type: ignore[misc]
                and found.node == on
            ),
            f"{fragment} is on {node}",
            within_s=WITHIN_S,
        )
    send(medusa, name, range(40, 70))
    await_windows(medusa, name, 60, WITHIN_S)

    choices = Choices(OnChange.REBUILD, inputs={StreamName("counts"): InputFrom.END})
    (arrow,) = medusa.compared(whole, SCHEMAS, choices).changes.arrows
    assert not arrow.is_new
    medusa.deploy(whole, SCHEMAS, choices)
    send(medusa, name, range(70, 100))
    await_windows(medusa, name, 90, WITHIN_S)
    found = owner(medusa, name, SHOWN)
    assert found is not None
    assert found.node == C
