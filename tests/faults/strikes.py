"""The table of faults. Each is bounded in time, and leaves all processes running."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.pause import pause, resume
from pipeline.ids import NO_EPOCH, NetworkId, NetworkName
from tests.faults.copies import (
    copy_is_fetched,
    copy_killed,
    copy_of_a_suspended_owner,
    copy_takes_over,
    copy_takes_over_at_any_time,
    store_is_gone,
)
from tests.faults.cuts import owner_cut_from_both, owner_cut_from_kafka, owner_cut_from_zookeeper
from tests.faults.missing import (
    input_missing,
    input_missing_owner_killed,
    input_missing_taken_over,
)
from tests.faults.moves import (
    moved,
    moved_both_killed,
    moved_owner_killed,
    moved_servers_killed,
    moved_target_killed,
)
from tests.faults.nodes import Node
from tests.faults.outages import (
    DOWN_MAX_S,
    broker_away,
    dead_letters_expired,
    derived_topic_grows,
    killed,
    zookeeper_cut_for_one,
)
from tests.faults.servers import Server
from tests.faults.standbys import (
    mode_changed_in_takeover,
    standby_disk_full,
    standby_killed,
    standby_killed_in_takeover,
    standby_killed_with_its_owner,
    standby_of_a_suspended_owner,
    standby_takes_over,
    standby_takes_over_at_any_time,
    standby_while_servers_are_killed,
)
from tests.faults.world import OWNER, World

SESSION_S = 10.0
"""Session timeout of ZooKeeper, as in `brokers/zookeeper.py`."""
START_S = 12.0
"""Approximate time from a node's start to its first batch."""
HANGS_MAX_S = 15.0
CUT_S = 60.0
FULL_MAX_S = 15.0
BATCH_WITHIN_S = 20.0
PAUSED_WITHIN_S = 60.0
QUIET_MAX_S = 2.0
HOUR_MS = 3_600_000
JUMPS_MS = (2 * HOUR_MS, -5 * HOUR_MS, 3 * HOUR_MS)
"""Forward beyond a broker's default limit of writers' clocks, back further, and back to zero."""
_POLL_S = 0.001


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: a name, a description, and its function."""

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
    """Stop it by SIGTERM, as `systemctl restart` does, and start it again."""
    world.node.stop()
    world.restart()


def kill_node(world: World, _: Random) -> None:
    """Kill it at any moment."""
    world.node.kill()
    world.restart()


def kill_node_in_batch(world: World, random: Random) -> None:
    """Kill it when a batch is planned in a checkpoint and not committed there."""
    _await_quickly(lambda: any(_planned(folder) for folder in _folders(world)))
    time.sleep(random.uniform(0, 0.2))
    world.node.kill()
    world.restart()


def kill_node_after_marker(world: World, random: Random) -> None:
    """Kill it after the commit of a transaction, before Spark can have committed the batch."""
    since_ms = time.time_ns() // 1_000_000
    running = random.choice(world.networks)
    fragment = random.choice(running.plan.fragments)
    _await_quickly(lambda: running.wrote_since(fragment, since_ms))
    world.node.kill()
    world.restart()


def kill_node_in_start(world: World, random: Random) -> None:
    """Kill it at a random moment between its start and its first batch."""
    world.node.kill()
    world.node.start()
    time.sleep(random.uniform(0, START_S))
    world.node.kill()
    world.restart()


def kill_jvm(world: World, _: Random) -> None:
    """Kill only its Java process; the node then exits, and is restarted as by a supervisor."""
    world.node.kill_jvm()
    world.wait(lambda: not world.node.running, "the node ends without Java", 30.0)
    world.restart()


def pause_node(world: World, random: Random) -> None:
    """Suspend it for longer than its ZooKeeper session; no other node claims its fragments."""
    world.node.pause()
    time.sleep(SESSION_S + random.uniform(2, 6))
    world.node.resume()


def zombie(world: World, random: Random) -> None:
    """Another node claims its fragments; then the first is resumed and must detect the loss."""
    old, new = world.node, world.new_node(world.node.checkpoints)
    _take_over(world, random, old, new)


def zombie_without_checkpoint(world: World, random: Random) -> None:
    """The same with a node that has a separate folder."""
    _take_over(world, random, world.node, world.new_node())


def new_folder(world: World, _: Random) -> None:
    """Kill the node permanently; a node without its files replaces it."""
    world.node.kill()
    world.node = world.new_node()
    world.restart()


def disk_full(world: World, random: Random) -> None:
    """All file writes of the node fail for a while."""
    world.node.fill_disk()
    try:
        time.sleep(random.uniform(1, FULL_MAX_S))
    finally:
        world.node.empty_disk()


def clock_jumps(world: World, random: Random) -> None:
    """Move the node's wall clock two hours forward, five back, then right; no record is sent."""
    for jump_ms in JUMPS_MS:
        with world.silence():
            time.sleep(random.uniform(0, QUIET_MAX_S))
            world.node.move_clock(jump_ms)
            time.sleep(random.uniform(0, QUIET_MAX_S))
        world.await_stable(time.time_ns() // 1_000_000)


# --- the servers --------------------------------------------------------------------------------


def kill_broker(world: World, random: Random) -> None:
    """Kill it, and start it a little later."""
    killed(world, random, Server.KAFKA)


def kill_broker_in_start(world: World, random: Random) -> None:
    """Kill it at a random moment between the start of a node and its first batch."""
    world.node.kill()
    world.restart()
    time.sleep(random.uniform(0, START_S))
    killed(world, random, Server.KAFKA)


def kill_zookeeper(world: World, random: Random) -> None:
    """Kill it, and start it a little later."""
    killed(world, random, Server.ZOOKEEPER)


def kill_servers(world: World, random: Random) -> None:
    """Kill both at once."""
    killed(world, random, Server.KAFKA, Server.ZOOKEEPER)


def kill_broker_and_node(world: World, random: Random) -> None:
    """Kill both at once, in random order."""
    node_first = random.random() < 1 / 2
    if node_first:
        world.node.kill()
    world.servers.kill(Server.KAFKA)
    world.node.kill()
    world.servers.begin(Server.KAFKA)
    world.servers.await_ready(Server.KAFKA)
    world.restart()


def kill_zookeeper_and_node(world: World, random: Random) -> None:
    """Kill both; the node restarts without a catalog, or with one that has just restarted."""
    world.node.kill()
    world.servers.kill(Server.ZOOKEEPER)
    world.node.start()
    time.sleep(random.uniform(0, DOWN_MAX_S))
    world.servers.begin(Server.ZOOKEEPER)
    world.servers.await_ready(Server.ZOOKEEPER)
    world.await_ready(world.node)


def hang_broker(world: World, random: Random) -> None:
    """Suspend it for a while."""
    _hang(world, random, Server.KAFKA)


def hang_zookeeper(world: World, random: Random) -> None:
    """Suspend it for a while, possibly for longer than a session."""
    _hang(world, random, Server.ZOOKEEPER)


def cut_network(world: World, _: Random) -> None:
    """For a minute no server answers the node, without any connection error."""
    servers = (Server.KAFKA, Server.ZOOKEEPER)
    for server in servers:
        world.servers.pause(server)
    time.sleep(CUT_S)
    for server in servers:
        world.servers.resume(server)


def registry_down(world: World, random: Random) -> None:
    """Connections to it are refused for a while; cached schemas do not need it."""
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
    """Delete all checkpoints of the node."""
    world.node.kill()
    shutil.rmtree(world.node.checkpoints)
    world.restart()


def checkpoint_deleted_twice(world: World, random: Random) -> None:
    """Delete all checkpoints, and kill the node during the rebuild."""
    world.node.kill()
    shutil.rmtree(world.node.checkpoints)
    world.node.start()
    world.await_ready(world.node)
    time.sleep(random.uniform(0, START_S / 2))
    world.node.kill()
    world.restart()


def checkpoint_older(world: World, random: Random) -> None:
    """Replace the checkpoints by an older copy, taken while the node was down."""
    world.node.kill()
    copy = _copied(world)
    since_ms = time.time_ns() // 1_000_000
    world.restart()
    world.await_stable(since_ms)
    time.sleep(random.uniform(0, 3))
    _replaced(world, copy)


def checkpoint_live_copy(world: World, random: Random) -> None:
    """Replace the checkpoints by a copy taken while the lanes ran, which may be inconsistent."""
    copy = _copied(world)
    time.sleep(random.uniform(0.5, 3))
    _replaced(world, copy)


def checkpoint_truncated(world: World, random: Random) -> None:
    """Truncate one file of every checkpoint to half."""
    world.node.kill()
    for folder in _folders(world):
        files = _files(folder)
        if files:
            path = random.choice(files)
            content = path.read_bytes()
            path.unlink()  # the folder of an earlier epoch may contain the same file
            path.write_bytes(content[: len(content) // 2])
    world.restart()


def checkpoint_file_missing(world: World, random: Random) -> None:
    """Delete one file of every checkpoint."""
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
        input_missing,
        input_missing_owner_killed,
        input_missing_taken_over,
        registry_down,
        registry_down_in_start,
        moved,
        moved_owner_killed,
        moved_target_killed,
        moved_both_killed,
        moved_servers_killed,
        standby_takes_over,
        standby_takes_over_at_any_time,
        standby_killed,
        standby_killed_in_takeover,
        mode_changed_in_takeover,
        standby_killed_with_its_owner,
        standby_disk_full,
        standby_of_a_suspended_owner,
        standby_while_servers_are_killed,
        copy_takes_over,
        copy_takes_over_at_any_time,
        copy_of_a_suspended_owner,
        copy_is_fetched,
        store_is_gone,
        copy_killed,
        owner_cut_from_kafka,
        owner_cut_from_zookeeper,
        owner_cut_from_both,
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
    # The copy lacks files that a running lane deletes meanwhile.
    with suppress(shutil.Error):
        shutil.copytree(world.node.checkpoints, copy)
    return copy


def _replaced(world: World, copy: Path) -> None:
    world.node.kill()
    shutil.rmtree(world.node.checkpoints)
    shutil.move(copy, world.node.checkpoints)
    world.restart()


def _await_quickly(condition: Callable[[], bool]) -> None:
    """Poll as often as possible, with a timeout, since the moment may not occur."""
    ends_at = time.monotonic() + BATCH_WITHIN_S
    while not condition() and time.monotonic() < ends_at:
        time.sleep(_POLL_S)
