"""One history: random steps of a seed, compared with the reference."""

import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Final

from pipeline.agent.state import Failed, NodeState, Running
from pipeline.deploy import documents
from pipeline.deploy.redrive_topic import RedriveTopic
from pipeline.errors import BrokenInvariantError, MedusaError
from pipeline.ids import NetworkId, NetworkName, SchemaId, TopicName
from pipeline.lanes.following import UnlikeOwnerError
from tests.histories import crowding, deploys, moving, secondaries, suspecting
from tests.histories.chain import Chain, Outcome, Script, Step
from tests.histories.documents import (
    CHANGES,
    FORGET,
    PLACE,
    RECOVERY,
    RELIABILITY,
    RESTARTS_NOTHING,
    TRIM,
    first,
    schema_of,
)
from tests.histories.node import OWNER, START, Node, remembering, toy_engine
from tests.histories.reference import Wrong
from tests.histories.world import FOLLOWER_GOES, LANE_GOES, NOWHERE_ID, World

SETTLE_ROUNDS: Final = 60
SETTLE_DEPLOYS: Final = 2
SETTLE_S: Final = 4.0
"""Below the maximum age of a response about ends for the detection of idle partitions."""
REST_ROUNDS: Final = 20
"""Longer than any move may take."""
FIRST_DOCUMENTS: Final = 400


def draw(
    seed: int,
    only: frozenset[str] = frozenset(),
    steps_many: tuple[int, int] = (4, 12),
    *,
    rolls_back: bool = False,
) -> Script:
    """The script of a seed. Each history prefers a few kinds of steps.

    Args:
        seed: of all that is drawn.
        only: allowed kinds, besides records and turns of the lanes; empty: all.
        steps_many: minimum and maximum number of steps of these kinds.
        rolls_back: as of a script.
    """
    rng = Random(seed)
    every = (*_ALL, *((RECOVERY,) if rolls_back else ()), *((PLACE,) if PLACE in only else ()))
    kinds = [kind for kind in every if not only or kind in only]
    preferred = rng.sample(sorted(set(kinds)), min(4, len(set(kinds))))
    begin = ["produce", "run"]
    if RELIABILITY in kinds and rng.random() < 0.5:
        begin.insert(0, RELIABILITY)  # so that followers have built their states
    if FORGET in only:
        begin.insert(0, FORGET)
    if TRIM in kinds and rng.random() < 0.5:
        begin.insert(0, TRIM)
    steps = [Step(kind, rng.randrange(1 << 20)) for kind in begin]
    for _ in range(rng.randint(*steps_many)):
        kind = rng.choice(preferred) if rng.random() < 0.6 else rng.choice(kinds)
        steps.append(Step(kind, rng.randrange(1 << 20)))
        if rng.random() < 0.6:
            steps.append(Step("produce", rng.randrange(1 << 20)))
        if rng.random() < 0.5:
            steps.append(Step(rng.choice(("run", "run", "drain")), rng.randrange(1 << 20)))
    append_time = rng.random() < 0.03 and (not only or "append_time" in only)
    return Script(seed, tuple(steps), append_time, rolls_back)


def written(
    seed: int, steps: str, *, append_time: bool = False, rolls_back: bool = False
) -> Script:
    """The script of a seed with the steps of a text, as printed for a shrunk history."""
    parts = (step.split(":") for step in steps.split())
    found = tuple(Step(kind, int(number)) for kind, number in parts)
    return Script(seed, found, append_time, rolls_back)


class History(Chain):
    """Runs a script in memory."""

    def __init__(self, script: Script, allowed: frozenset[str] = frozenset()) -> None:
        rng = Random(script.seed)
        shared = rng.random() < 0.5
        self.world = World(rng, append_time=script.append_time, shared_folder=shared)
        self.world.watch = self.on_commit
        self.world.ended = self._ended
        net = first(Random(rng.randrange(FIRST_DOCUMENTS)))
        net = replace(net, rolls_back=script.rolls_back)
        super().__init__(self.world, net, Outcome(script), allowed)

    def run(self) -> Outcome:
        """Run it to its end, or to the first violation."""
        world, script = self.world, self.outcome.script
        try:
            world.start_node("n1")
            if world.rng.random() < 0.4:
                world.start_node("n2")
            if world.append_time:
                self.log("the cluster stamps records with its own time")
            self.log(self.net.text)
            for stream in self.net.streams:
                for partition in (0, 1):
                    del partition
                    world.produce(stream.topic, world.rng, kind=stream.kind, plain=True)
            self.deploy(self.net, world.rng)
            for step in script.steps:
                if self.outcome.wrong:
                    return self.outcome
                rng = world.rng = Random(step.seed)
                world.follower_goes = FOLLOWER_GOES[step.seed % len(FOLLOWER_GOES)]
                self.log(f"{step}")
                self._step(step.kind, rng)
            if not self.outcome.wrong:
                self._settle()
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001 - any exception is a finding
            text = traceback.format_exception_only(error)[-1].strip()
            self.log("".join(traceback.format_exception(error)[-6:]))
            self.wrong(Wrong("broke", "", text))
        finally:
            world.end()
        return self.outcome

    def _step(self, kind: str, rng: Random) -> None:
        if kind in CHANGES:
            self.change(kind, rng)
        else:
            STEPS[kind](self, rng)
        for text in crowding.too_many(self.world):
            self.wrong(Wrong("crowded", "", text))

    def change(self, kind: str, rng: Random) -> None:
        """Deploy the next document; another reliability, priority or retention restarts nothing."""
        world = self.world
        if kind == TRIM:
            world.keep_internal_topics()
        if kind not in RESTARTS_NOTHING:
            super().change(kind, rng)
            return
        moves = world.catalog.transfers.of(OWNER)  # they are ready, or end, at any time
        for node in world.nodes.values():
            node.look(fully=True)  # what is to be done without this deploy
        is_calm = self.all_run() and not self.excuses and not moves
        passed_s = world.clock.passed_s
        before, known = dict(secondaries.running(world)), secondaries.topics(world)
        super().change(kind, rng)
        for node in world.nodes.values():
            node.look(fully=True)
        if crowding.is_limited(world):
            return  # what has a higher priority now may take places
        if is_calm and world.clock.passed_s == passed_s:
            for text in secondaries.restarted(world, before, known):
                self.wrong(Wrong("restarted", "", text))

    def _ended(self, lane: str, error: Exception) -> None:
        self.log(f"    {lane} ended: {type(error).__name__}: {error}")
        if isinstance(error, UnlikeOwnerError) and not self.world.undecided:
            self.wrong(Wrong("unlike", lane, str(error)))
        if isinstance(error, BrokenInvariantError) or not isinstance(error, MedusaError):
            self.wrong(Wrong("broke", lane, f"{type(error).__name__}: {error}"))

    # --- the end ----------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Wait until all is read and published; missing results are lost."""
        world = self.world
        world.rng, world.follower_goes = Random(0), LANE_GOES
        self.log("settle")
        moving.undrain(world)
        suspecting.end_all(world)
        if not world.nodes:
            world.start_node("n1")
        if crowding.is_limited(world):
            self._rest_crowded()
            crowding.end_all(world)
        for deploys_before in range(SETTLE_DEPLOYS + 1):
            for stream in self.net.streams:  # a stream without one good record has no event time
                world.produce(stream.topic, world.rng, kind=stream.kind, plain=True)
            for _ in range(SETTLE_ROUNDS):
                world.round(SETTLE_S)
                if self.outcome.wrong:
                    return
                if not list(self.open()):
                    self._rest()
                    return
            stopped = dict(self._stopped())
            self.check_stopped(stopped, answered=deploys_before > 0)
            if deploys_before < SETTLE_DEPLOYS:
                self.deploy(self.net, world.rng, stopped)
        for fragment, text in self.open():
            self.wrong(Wrong("stuck", fragment, f"{text}; {self._states()}"))

    def _rest(self) -> None:
        """Check that nothing changes its owner any more, and that no move is left.

        The secondaries are those of the catalog, and level.
        """
        world = self.world
        for _ in range(REST_ROUNDS):
            world.round(SETTLE_S)
        before = moving.owners(world)
        for _ in range(REST_ROUNDS):
            world.round(SETTLE_S)
        for fragment, now in moving.owners(world).items():
            if before.get(fragment) != now:
                text = f"owned by {before.get(fragment)}, and by {now} without a reason"
                self.wrong(Wrong("restless", str(fragment.fragment), text))
        known = frozenset[bytes]().union(*(one.results.known for one in self.ledgers.values()))
        for ledger in self.ledgers.values():
            for text in ledger.results.foreign(known):
                self.wrong(Wrong("again", ledger.fragment, text))
        for text in (*moving.overdue(world), *secondaries.others(world)):
            self.wrong(Wrong("restless", "", text))

    def _rest_crowded(self) -> None:
        """Check that fragments keep their places, that limits are kept, and priorities are."""
        world = self.world
        for _ in range(REST_ROUNDS):
            world.round(SETTLE_S)
        before = crowding.places(world)
        for _ in range(REST_ROUNDS):
            world.round(SETTLE_S)
            for text in crowding.too_many(world):
                self.wrong(Wrong("crowded", "", text))
        if before != crowding.places(world):
            text = f"places were {before}, and are {crowding.places(world)} without a reason"
            self.wrong(Wrong("restless", "", text))
        for text in crowding.wrongly_placed(world):
            self.wrong(Wrong("restless", "", text))

    def _stopped(self) -> Iterator[tuple[str, str]]:
        """The stopped lanes with their errors."""
        for node in self.world.nodes.values():
            state: NodeState = node._agent._state
            for key, lane in state.lanes.items():
                if isinstance(lane.phase, Failed):
                    yield str(key.fragment.fragment), lane.tries.last_error

    def _states(self) -> str:
        return "; ".join(text for node in self.world.nodes.values() for text in _lanes_of(node))


def _lanes_of(node: Node) -> Iterator[str]:
    state: NodeState = node._agent._state
    for key, lane in state.lanes.items():
        error = lane.tries.last_error
        if not isinstance(lane.phase, Running) or error:
            yield f"{node.name}: {key.fragment.fragment} {lane.phase.phase.value} {error}"
    yield from node.troubles


# --- steps ----------------------------------------------------------------------------------------


def _produce(history: History, rng: Random) -> None:
    for _ in range(rng.randint(1, 8)):
        stream = rng.choice(history.net.streams)
        history.world.produce(stream.topic, rng, kind=stream.kind)
        history.world.clock.passed_s += rng.choice((0.0, 0.3, 1.0))


def _run(history: History, rng: Random) -> None:
    for _ in range(rng.randint(1, 6)):
        history.world.round(rng.choice((0.3, 1.0, 3.0)))


def _drain(history: History, rng: Random) -> None:
    """Run until all is read, with a limit."""
    del rng
    for _ in range(20):
        history.world.round(1.0)
        if not any(ledger.unread() for ledger in history.ledgers.values()):
            return


def _rollback(history: History, rng: Random) -> None:
    history.deploy(rng.choice(history.nets), rng)


def _destroy(history: History, rng: Random) -> None:
    """Destroy and deploy again, the same or an earlier document."""
    refusal = deploys.destroy(history.world, history.net)
    history.log(f"  destroy: {refusal or 'done'}")
    if not refusal:
        for _ in range(rng.randint(0, 2)):
            history.world.round()
        history.deploy(rng.choice(history.nets[-3:]), rng)


def _restart(history: History, rng: Random) -> None:
    world = history.world
    if not world.nodes:
        return
    name = rng.choice(sorted(world.nodes))
    if rng.random() < 0.7:
        _produce(history, rng)
    lose = rng.random() < 0.4
    world.kill_node(name, lose_folder=lose)
    history.log(f"  {name} restarts{', its folder is gone' if lose else ''}")
    world.start_node(name)


def _set_back(history: History, rng: Random) -> None:
    """All nodes are killed, and their disks lose the last batches of each checkpoint."""
    world = history.world
    _produce(history, rng)
    for _ in range(rng.randint(2, 6)):
        world.round()
    names = sorted(world.nodes)
    for name in names:
        world.kill_node(name, lose_folder=False)
    world.end_zombies()
    for root in world.folders.values():
        for folders in root.values():
            for folder in folders.values():
                folder.set_back(rng.randint(0, 5), damage=rng.random() < 0.2)
    history.log("  all nodes restart with older checkpoints")
    for name in names:
        world.start_node(name)


def _take_over(history: History, rng: Random) -> None:
    """A node is killed or disconnected; another one runs or is started."""
    world = history.world
    if not world.nodes:
        return
    name = rng.choice(sorted(world.nodes))
    if rng.random() < 0.4:
        world.lose_session(name)
        history.log(f"  {name} is cut off")
    else:
        world.kill_node(name, lose_folder=rng.random() < 0.3)
        history.log(f"  {name} dies")
    for other in ("n1", "n2", "n3"):
        if other != name and other not in world.nodes:
            world.start_node(other)
            return


def _made_again(history: History, rng: Random) -> None:
    """An external topic is deleted and created again."""
    kafka = history.world.kafka
    topic = rng.choice(history.net.streams).topic
    kafka.delete_topics((TopicName(topic),))
    kafka.create(topic, 2)
    history.excuses.add("made again")
    history.log(f"  {topic}")


def _grown(history: History, rng: Random) -> None:
    """An external topic gets one more partition, and a record in it."""
    world = history.world
    stream = rng.choice(history.net.streams)
    if stream.topic not in world.kafka.topics:
        return
    topic = world.kafka.topics[TopicName(stream.topic)]
    if len(topic.partitions) > 3:
        return
    world.kafka.grow(TopicName(stream.topic))
    for _ in range(4):
        world.produce(stream.topic, rng, kind=stream.kind, plain=True)


def _schema_gone(history: History, rng: Random) -> None:
    """A schema of a producer is permanently deleted from the registry."""
    registry = history.world.registry
    topic = rng.choice(history.net.streams).topic
    schema = registry.lookup(f"{topic}-value", schema_of(rng.choice(("int", "long"))))
    if schema is not None:
        registry.delete(SchemaId(schema))
        history.excuses.add("schema gone")
        history.log(f"  {schema}")


def _schema_late(history: History, rng: Random) -> None:
    """A schema is registered after records of its id, as `dlq redrive` requires."""
    del rng
    nowhere = SchemaId(NOWHERE_ID)
    history.world.registry.add_late(nowhere, schema_of(history.net.streams[0].kind))
    history.world.catalog.missing_schemas.forget(nowhere)


def _letters_expire(history: History, rng: Random) -> None:
    """Retention deletes all dead letters."""
    del rng
    history.excuses.add("letters expired")
    kafka = history.world.kafka
    for name, ends in kafka.end_offsets(kafka.topic_names()).items():
        if name.endswith(".dlq"):
            kafka.delete_records(name, ends)


def _redrive(history: History, rng: Random) -> None:
    """A fragment gets a redrive topic, or more records in it; or an older catalog is restored."""
    catalog = history.world.catalog
    network = catalog.networks.get(NetworkId(OWNER, NetworkName(history.net.name)))
    version = None if network is None else catalog.versions.get(network.network, network.version)
    if network is None or version is None:
        return
    plan = documents.replan(version)
    fragment, servers = rng.choice(plan.fragments), history.world.servers
    RedriveTopic(plan, fragment, catalog, servers.topics, servers.log).create()
    topic = fragment.names.redrive
    for _ in range(rng.randint(0, 2)):  # of no source, so that no path counts them
        history.world.kafka.append(topic, None, b"", timestamp_ms=START)
    forgotten = rng.random() < 0.2
    if forgotten:
        history.world.forget_topic(fragment.names, topic)
    history.log(f"  {topic}{', which the catalog forgets' if forgotten else ''}")


def _move(history: History, rng: Random) -> None:
    """A fragment moves; sometimes the move is cancelled, or one of the nodes is lost meanwhile."""
    history.log(f"  {moving.move(history.world, rng)}")
    if rng.random() < 0.5:
        _produce(history, rng)
    for _ in range(rng.randint(0, 6)):
        history.world.round(rng.choice((0.3, 1.0)))
    if rng.random() < 0.2:
        history.log(f"  cancelled: {moving.cancel(history.world, rng)}")
    elif rng.random() < 0.3:
        _take_over(history, rng)


def _vacate(history: History, rng: Random) -> None:
    """A node is drained, or no node is any more."""
    if rng.random() < 0.3:
        history.log(f"  no longer: {moving.undrain(history.world)}")
    else:
        history.log(f"  {moving.drain(history.world, rng)}")
    for _ in range(rng.randint(0, 6)):
        history.world.round(rng.choice((0.3, 1.0)))


def _suspect(history: History, rng: Random) -> None:
    """A node is suspected by another one; sometimes no longer after a while."""
    history.log(f"  {suspecting.suspect(history.world, rng)}")
    if rng.random() < 0.5:
        _produce(history, rng)
    for _ in range(rng.randint(0, 6)):
        history.world.round(rng.choice((0.3, 1.0)))
    if rng.random() < 0.4:
        history.log(f"  {suspecting.trust(history.world, rng)}")


def _crowd(history: History, rng: Random) -> None:
    """All nodes restart, with other limits; or one node is lost, or comes."""
    if rng.random() < 0.4 and crowding.is_limited(history.world):
        _take_over(history, rng)
    else:
        history.log(f"  {crowding.crowd(history.world, rng)}")
    for _ in range(rng.randint(0, 6)):
        history.world.round(rng.choice((0.3, 1.0)))


STEPS: Mapping[str, Callable[[History, Random], None]] = {
    "produce": _produce,
    "run": _run,
    "drain": _drain,
    "rollback": _rollback,
    "destroy": _destroy,
    "restart": _restart,
    "set_back": _set_back,
    "take_over": _take_over,
    "made_again": _made_again,
    "grown": _grown,
    "schema_gone": _schema_gone,
    "schema_late": _schema_late,
    "letters_expire": _letters_expire,
    "redrive": _redrive,
    "move": _move,
    "vacate": _vacate,
    "suspect": _suspect,
    "trust": lambda history, rng: history.log(f"  {suspecting.trust(history.world, rng)}"),
    "crowd": _crowd,
}
_ALL = (
    *sorted(CHANGES.keys() - {RECOVERY, PLACE}),
    *("rollback", "destroy", "restart", "set_back", "take_over", "take_over", "made_again"),
    *("grown", "schema_gone", "schema_late", "letters_expire", "redrive", "move", "vacate"),
    *(RELIABILITY, "suspect", "suspect", "trust", "crowd"),
)


def run(script: Script, allowed: frozenset[str] = frozenset()) -> Outcome:
    """Run a script; the in-memory engine must be installed."""
    history = History(script, allowed)
    with remembering(), toy_engine(lambda: history.world.rng):
        return history.run()
