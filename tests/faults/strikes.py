"""The table of faults. Each strikes at once, is bounded, and leaves everything running again."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pipeline.catalog.records import LaneState
from pipeline.deploy.pause import pause, resume
from pipeline.ids import NO_EPOCH, NetworkId, NetworkName
from tests.faults.nodes import Node
from tests.faults.outages import (
    broker_away,
    dead_letters_expired,
    derived_topic_grows,
    zookeeper_cut_for_one,
)
from tests.faults.servers import Server
from tests.faults.world import OWNER, World

SESSION_S = 10.0
"""How long ZooKeeper waits for a silent node; as in `brokers/zookeeper.py`."""
START_S = 12.0
"""About what a node takes to run its first batch."""
DOWN_MAX_S = 6.0
HANGS_MAX_S = 15.0
CUT_S = 60.0
FULL_MAX_S = 15.0
BATCH_WITHIN_S = 20.0
PAUSED_WITHIN_S = 60.0
QUIET_MAX_S = 2.0
HOUR_MS = 3_600_000
JUMPS_MS = (2 * HOUR_MS, -5 * HOUR_MS, 3 * HOUR_MS)
"""Further than a broker bears of its writers' clocks by default, further back, and right again."""
_LOOK_S = 0.001


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: a name, what it does in words, and how."""

    name: str
    does: str
    strike: Callable[[World, Random], None]


# --- the node -----------------------------------------------------------------------------------


def pause_lanes(world: World, _: Random) -> None:
    """All lanes stop between two batches, as by `medusa pause`, and start again."""
    for running in world.networks:
        pause(NetworkId(OWNER, NetworkName(running.network)), None, world.catalog)
    world.wait(lambda: _all_stopped(world), "all lanes are stopped", PAUSED_WITHIN_S)
    for running in world.networks:
        resume(NetworkId(OWNER, NetworkName(running.network)), None, world.catalog)


def stop_node(world: World, _: Random) -> None:
    """It is asked to end, as by `systemctl restart`, and started again."""
    world.node.stop()
    world.restart()


def kill_node(world: World, _: Random) -> None:
    """At whatever moment it is."""
    world.node.kill()
    world.restart()


def kill_node_in_batch(world: World, random: Random) -> None:
    """When a batch is planned in some checkpoint and not committed there."""
    _await_quickly(lambda: any(_planned(folder) for folder in _folders(world)))
    time.sleep(random.uniform(0, 0.2))
    world.node.kill()
    world.restart()


def kill_node_after_marker(world: World, random: Random) -> None:
    """When a transaction was committed, before Spark can have heard of it."""
    since_ms = time.time_ns() // 1_000_000
    running = random.choice(world.networks)
    fragment = random.choice(running.plan.fragments)
    _await_quickly(lambda: running.wrote_since(fragment, since_ms))
    world.node.kill()
    world.restart()


def kill_node_in_start(world: World, random: Random) -> None:
    """At some moment between its start and its first batch."""
    world.node.kill()
    world.node.start()
    time.sleep(random.uniform(0, START_S))
    world.node.kill()
    world.restart()


def kill_jvm(world: World, _: Random) -> None:
    """Only its Java process; the node then ends by itself, and is started as by a supervisor."""
    world.node.kill_jvm()
    world.wait(lambda: not world.node.running, "the node ends without Java", 30.0)
    world.restart()


def pause_node(world: World, random: Random) -> None:
    """For as long as no session with ZooKeeper outlives; nobody takes its place."""
    world.node.pause()
    time.sleep(SESSION_S + random.uniform(2, 6))
    world.node.resume()


def zombie(world: World, random: Random) -> None:
    """Another node takes over; then the first goes on and has to notice that it is nobody."""
    old, new = world.node, world.new_node(world.node.checkpoints)
    _take_over(world, random, old, new)


def zombie_without_checkpoint(world: World, random: Random) -> None:
    """The same with a node that shares no folder with the first."""
    _take_over(world, random, world.node, world.new_node())


def new_folder(world: World, _: Random) -> None:
    """The node is gone for good; one without any of its files takes its place."""
    world.node.kill()
    world.node = world.new_node()
    world.restart()


def disk_full(world: World, random: Random) -> None:
    """Nothing that the node writes to its disk gets there for a while."""
    world.node.fill_disk()
    try:
        time.sleep(random.uniform(1, FULL_MAX_S))
    finally:
        world.node.empty_disk()


def clock_jumps(world: World, random: Random) -> None:
    """The node's wall clock goes two hours forward, five back, and is set right, in silences."""
    for jump_ms in JUMPS_MS:
        with world.silence():
            time.sleep(random.uniform(0, QUIET_MAX_S))
            world.node.move_clock(jump_ms)
            time.sleep(random.uniform(0, QUIET_MAX_S))
        world.await_stable(time.time_ns() // 1_000_000)


# --- the servers --------------------------------------------------------------------------------


def kill_broker(world: World, random: Random) -> None:
    """And start it again a little later."""
    _kill(world, random, Server.KAFKA)


def kill_broker_in_start(world: World, random: Random) -> None:
    """At some moment between the start of a node and its first batch."""
    world.node.kill()
    world.restart()
    time.sleep(random.uniform(0, START_S))
    _kill(world, random, Server.KAFKA)


def kill_zookeeper(world: World, random: Random) -> None:
    """And start it again a little later."""
    _kill(world, random, Server.ZOOKEEPER)


def kill_servers(world: World, random: Random) -> None:
    """Both at once."""
    _kill(world, random, Server.KAFKA, Server.ZOOKEEPER)


def kill_broker_and_node(world: World, random: Random) -> None:
    """The node first or the broker first, at once."""
    node_first = random.random() < 1 / 2
    if node_first:
        world.node.kill()
    world.servers.kill(Server.KAFKA)
    world.node.kill()
    world.servers.begin(Server.KAFKA)
    world.servers.await_ready(Server.KAFKA)
    world.restart()


def kill_zookeeper_and_node(world: World, random: Random) -> None:
    """The node finds no catalog when it comes back, or one that just came back itself."""
    world.node.kill()
    world.servers.kill(Server.ZOOKEEPER)
    world.node.start()
    time.sleep(random.uniform(0, DOWN_MAX_S))
    world.servers.begin(Server.ZOOKEEPER)
    world.servers.await_ready(Server.ZOOKEEPER)
    world.await_ready(world.node)


def hang_broker(world: World, random: Random) -> None:
    """It answers nothing for a while."""
    _hang(world, random, Server.KAFKA)


def hang_zookeeper(world: World, random: Random) -> None:
    """It answers nothing for a while, perhaps for longer than a session lasts."""
    _hang(world, random, Server.ZOOKEEPER)


def cut_network(world: World, _: Random) -> None:
    """For a minute the node reaches no server, and is not told so: nothing answers."""
    servers = (Server.KAFKA, Server.ZOOKEEPER)
    for server in servers:
        world.servers.pause(server)
    time.sleep(CUT_S)
    for server in servers:
        world.servers.resume(server)


def registry_down(world: World, random: Random) -> None:
    """It is refused for a while; nothing that is known needs it."""
    world.servers.stop_registry()
    time.sleep(random.uniform(1, DOWN_MAX_S))
    world.servers.start_registry()


def registry_down_in_start(world: World, random: Random) -> None:
    """A node starts while it is down."""
    world.node.kill()
    world.servers.stop_registry()
    world.node.start()
    time.sleep(random.uniform(1, START_S))
    world.servers.start_registry()
    world.await_ready(world.node)


# --- checkpoints --------------------------------------------------------------------------------


def checkpoint_deleted(world: World, _: Random) -> None:
    """All that the node knew of its lanes."""
    world.node.kill()
    shutil.rmtree(world.node.checkpoints)
    world.restart()


def checkpoint_deleted_twice(world: World, random: Random) -> None:
    """It is killed again while it rebuilds."""
    world.node.kill()
    shutil.rmtree(world.node.checkpoints)
    world.node.start()
    world.await_ready(world.node)
    time.sleep(random.uniform(0, START_S / 2))
    world.node.kill()
    world.restart()


def checkpoint_older(world: World, random: Random) -> None:
    """A copy from before, taken while the node was down, comes back."""
    world.node.kill()
    copy = _copied(world)
    since_ms = time.time_ns() // 1_000_000
    world.restart()
    world.await_stable(since_ms)
    time.sleep(random.uniform(0, 3))
    _replaced(world, copy)


def checkpoint_live_copy(world: World, random: Random) -> None:
    """A copy that was taken while the lanes ran, so that nothing in it need fit together."""
    copy = _copied(world)
    time.sleep(random.uniform(0.5, 3))
    _replaced(world, copy)


def checkpoint_truncated(world: World, random: Random) -> None:
    """One file of every checkpoint is cut off in the middle."""
    world.node.kill()
    for folder in _folders(world):
        files = _files(folder)
        if files:
            path = random.choice(files)
            content = path.read_bytes()
            path.unlink()  # the folder of an earlier epoch may hold the same file
            path.write_bytes(content[: len(content) // 2])
    world.restart()


def checkpoint_file_missing(world: World, random: Random) -> None:
    """One file of every checkpoint is gone."""
    world.node.kill()
    for folder in _folders(world):
        files = _files(folder)
        if files:
            random.choice(files).unlink()
    world.restart()


FAULTS: Mapping[str, Fault] = {
    strike.__name__: Fault(strike.__name__, (strike.__doc__ or "").strip(), strike)
    for strike in (
        pause_lanes,
        stop_node,
        kill_node,
        kill_node_in_batch,
        kill_node_after_marker,
        kill_node_in_start,
        kill_jvm,
        pause_node,
        zombie,
        zombie_without_checkpoint,
        new_folder,
        disk_full,
        clock_jumps,
        kill_broker,
        kill_broker_in_start,
        kill_zookeeper,
        kill_servers,
        kill_broker_and_node,
        kill_zookeeper_and_node,
        hang_broker,
        hang_zookeeper,
        cut_network,
        broker_away,
        zookeeper_cut_for_one,
        derived_topic_grows,
        dead_letters_expired,
        registry_down,
        registry_down_in_start,
        checkpoint_deleted,
        checkpoint_deleted_twice,
        checkpoint_older,
        checkpoint_live_copy,
        checkpoint_truncated,
        checkpoint_file_missing,
    )
}


def _all_stopped(world: World) -> bool:
    return all(
        status.state is LaneState.STOPPED
        for running in world.networks
        for status in world.catalog.statuses.of(NetworkId(OWNER, NetworkName(running.network)))
    )


def _kill(world: World, random: Random, *servers: Server) -> None:
    for server in servers:
        world.servers.kill(server)
    time.sleep(random.uniform(0, DOWN_MAX_S))
    for server in servers:
        world.servers.begin(server)
    for server in servers:
        world.servers.await_ready(server)


def _hang(world: World, random: Random, server: Server) -> None:
    world.servers.pause(server)
    time.sleep(random.uniform(1, HANGS_MAX_S))
    world.servers.resume(server)


def _take_over(world: World, random: Random, old: Node, new: Node) -> None:
    old.pause()
    world.node = new
    since_ms = time.time_ns() // 1_000_000
    world.restart()
    world.await_stable(since_ms)
    old.resume()
    world.wait(
        lambda: (
            any(record.node == old.name for record in world.catalog.nodes.all()) or not old.running
        ),
        "the zombie finds ZooKeeper again",
        60.0,
    )
    time.sleep(random.uniform(2, 5))
    old.kill()


def _folders(world: World) -> Iterator[Path]:
    """The newest checkpoint of every fragment."""
    for running in world.networks:
        for fragment in running.plan.fragments:
            parent = world.node.checkpoints / fragment.names.stable.checkpoint(NO_EPOCH)
            folders = sorted(path for path in parent.parent.glob("epoch-*") if path.is_dir())
            yield from folders[-1:]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _planned(folder: Path) -> bool:
    """Whether a batch is planned in a checkpoint and not committed."""
    return _last(folder / "offsets") > _last(folder / "commits")


def _last(folder: Path) -> int:
    try:
        return max((int(p.name) for p in folder.iterdir() if p.name.isdecimal()), default=-1)
    except FileNotFoundError:
        return -1


def _copied(world: World) -> Path:
    copy = world.folder / f"copy-{time.monotonic_ns()}"
    # What a running lane removes meanwhile is not in the copy.
    with suppress(shutil.Error):
        shutil.copytree(world.node.checkpoints, copy)
    return copy


def _replaced(world: World, copy: Path) -> None:
    world.node.kill()
    shutil.rmtree(world.node.checkpoints)
    shutil.move(copy, world.node.checkpoints)
    world.restart()


def _await_quickly(condition: Callable[[], bool]) -> None:
    """Look as often as can be; a moment that never comes is not waited for longer."""
    ends_at = time.monotonic() + BATCH_WITHIN_S
    while not condition() and time.monotonic() < ends_at:
        time.sleep(_LOOK_S)
