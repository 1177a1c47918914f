"""A node in memory: real agent, performer, polls, plans and lanes on the in-memory engine."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from random import Random
from types import SimpleNamespace
from typing import Any, Final, cast

from pipeline.agent import perform
from pipeline.agent.background import Job, attempt
from pipeline.agent.events import Event, Tick
from pipeline.agent.loop import Agent
from pipeline.agent.perform import NodeContext, Performer, Workers
from pipeline.agent.planning import Planning
from pipeline.agent.polls.boundaries import BoundaryPoll
from pipeline.agent.polls.catalog import CatalogPoll
from pipeline.agent.polls.ends import EndsPoll
from pipeline.agent.state import Lane as AgentLane
from pipeline.agent.state import NodeState, first_state
from pipeline.agent.suspicions import Suspicions
from pipeline.agent.watched import Watched
from pipeline.catalog import codec, record_store
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import NodeRecord
from pipeline.deploy import documents
from pipeline.errors import MedusaError
from pipeline.event_log.codec import encode
from pipeline.event_log.event import LoggedEvent
from pipeline.heartbeats.detector import Suspect, Suspicion, Why
from pipeline.ids import FragmentId, Millis, NodeId, ParticipantId, SteadyMillis
from pipeline.lanes.expiry import find_expiring
from pipeline.names import Znodes
from pipeline.network import document
from pipeline.planner import digest, planner
from pipeline.planner.plan import Fragment
from pipeline.spark.run import (
    batch_loop,
    lane,
    lane_planner,
    lane_query,
    lane_trimming,
    last_marker,
    output_succession,
    rebuild_query,
    start_facts,
    start_state,
)
from pipeline.spark.run.handover import Followed
from pipeline.spark.run.lane import StableLane
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_news import LaneNews
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.schema_resolver import SchemaResolver
from pipeline.trimming import by_need
from tests.histories import beside, engine, folders, followers, kafka, looking
from tests.histories.folders import Root
from tests.histories.followers import Follower, Followers
from tests.histories.kafka import Kafka
from tests.histories.lane_inputs import Inputs
from tests.histories.replaced import replaced
from tests.histories.turns import Condition, Turn
from tests.memory_store import MemoryStore

OWNER = ParticipantId("local")
_SILENT = Suspicion(Why.SILENT, 1_100, 1_000, 0, SteadyMillis(0))


class Nothing:
    """Placeholder of unused dependencies of a node: a Spark session, a warm-up."""

    def __init__(self, *_: object) -> None:
        self.version = "4"

    def end(self) -> None:
        """Do nothing: there is no warm-up."""


class Lane(StableLane):
    """A real lane on the in-memory engine."""

    def __init__(
        self,
        settings: LaneSettings,
        host: LaneHost,
        followed: Followed | None,
        rng: Callable[[], Random],
    ) -> None:
        super().__init__(settings, host, followed)
        self._inputs = Inputs(host, settings, rng)
        assert Turn.current is not None
        Turn.current.facts["settings"] = settings

    def run(self) -> None:
        """Run the lane; its error is stored for the checks."""
        try:
            super().run()
        except Exception as error:
            assert Turn.current is not None
            Turn.current.facts["error"] = error
            raise


class Mailbox:
    """The agent's queue, without waits."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque()

    def put(self, event: Event) -> None:
        """Append an event, unless the process is killed."""
        if Turn.current is None or not Turn.current.dead:
            self.events.append(event)

    def next(self) -> Event:
        """The next one."""
        return self.events.popleft() if self.events else Tick()


@dataclass(frozen=True, slots=True)
class AtOnce:
    """A worker that executes each job synchronously."""

    name: str

    def put(self, key: object, job: Job) -> None:
        """Do it."""
        del key
        attempt(self.name, job)

    def end(self, within_s: float) -> bool:
        """Return True: no job is pending."""
        return within_s >= 0


@dataclass(frozen=True, slots=True)
class Around:
    """What all nodes share."""

    kafka: Kafka
    registry: Any
    open_store: Callable[[], MemoryStore]
    clock: Any
    rng: Callable[[], Random]
    ended: Callable[[str, Exception], None]


SKEWS_S: Final = {"n1": 2_220.0, "n2": -660.0, "n3": 4.0}
"""How far the wall clocks of some machines are ahead of the broker's; the others are right."""


class MachineClock:
    """The clock of a node's machine: its wall clock is wrong, steady time is as everywhere."""

    def __init__(self, true: Any, name: str) -> None:
        self._true, self._skew_s = true, SKEWS_S.get(name, 0.0)

    def now_ms(self) -> Millis:
        """Wall time, as the machine has it."""
        return Millis(self._true.now_ms() + round(1_000 * self._skew_s))

    def monotonic_s(self) -> float:
        """Steady time, by which its clients stamp what they have read, too."""
        found: float = self._true.monotonic_s()
        return found

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self._true.sleep(seconds)


class Node:
    """One life of a node."""

    def __init__(self, name: str, checkpoints: Root, around: Around, most: int = 0) -> None:
        self.name, self.checkpoints = name, checkpoints
        self.store = around.open_store()
        self.troubles: list[str] = []
        self._ended, self._rng = around.ended, around.rng
        catalog = Catalog(self.store, Znodes(""))
        clock, cluster = MachineClock(around.clock, name), around.kafka
        now_ms = clock.now_ms()
        record = NodeRecord(
            NodeId(name), OWNER, "host", 1, now_ms, "0", reads=1, most_fragments=most
        )
        self.record = record
        catalog.nodes.register(record)
        self._mailbox = mailbox = Mailbox()
        watched, news = Watched(), LaneNews()
        missing = catalog.missing_schemas
        resolver = SchemaResolver(around.registry, cluster, missing.all, missing.record)
        nothing = cast("Any", Nothing())
        host = LaneHost(
            record.node,
            nothing,
            resolver,
            cluster,
            nothing,
            cast("Any", checkpoints),
            clock,
            mailbox.put,
            claimed=nothing.end,
            news=news,
        )
        self.suspects: frozenset[Suspect] = frozenset()
        self.suspicions = Suspicions(clock)
        make = partial(Follower, host=host, node=record.node, rng=around.rng)
        self._followers = Followers(catalog.transfers, make, clock, _not_logged, record.node)
        context = NodeContext(
            node=record,
            catalog=catalog,
            make_plan=Planning(catalog.versions.get, documents.replan).plan,
            admit=host.admit,
            find_expiring=partial(find_expiring, cluster),
            make_lane=lambda settings, followed: Lane(settings, host, followed, around.rng),
            signals=cluster.producer(0.0),
            watched=watched,
            news=news,
            followers=self._followers,
            suspicions=self.suspicions,
            workers=Workers(
                AtOnce("planning"), AtOnce("signals"), AtOnce("reports"), AtOnce("topics")
            ),
            log=_not_logged,
            clock=clock,
        )
        self._performer = Performer(context, mailbox.put)
        state = first_state(record)
        self._agent = Agent(cast("Any", mailbox), self._performer, state, clock)
        self._catalog = CatalogPoll(
            catalog,
            record,
            clock,
            mailbox.put,
            _not_logged,
            self.suspicions,
            self._followers.standbys,
        )
        self._of_kafka: tuple[EndsPoll | BoundaryPoll, ...] = (
            EndsPoll(cluster.ends_reader(), watched, news, mailbox.put),
            BoundaryPoll(cluster, lambda: cluster.reader(0.0), watched, clock, news),
        )

    @property
    def turns(self) -> list[Turn]:
        """The running threads of its lanes and followers."""
        threads = (running.thread for running in self._performer._lanes.values())
        lanes = [turn for turn in cast("Iterator[Turn]", threads) if not turn.done]
        return lanes + self._followers.turns

    def follows(self, turn: Turn) -> bool:
        """Whether a thread is that of a follower."""
        return turn in self._followers.turns

    @property
    def lanes(self) -> Mapping[FragmentId, AgentLane]:
        """Its lanes, as its agent knows them."""
        state: NodeState = self._agent._state
        return {key.fragment: lane for key, lane in state.lanes.items()}

    def go(self, turn: Turn) -> None:
        """Run a thread to its next pause; report the error that has ended a lane or a follower."""
        turn.go()
        error = turn.facts.pop("error", None)
        if error is not None:
            self._ended(f"{self.name}: {turn.name}", error)
        if turn.failed is not None:
            raise turn.failed

    def look(self, *, fully: bool = False) -> None:
        """Run every poll once, and the agent.

        `fully`: read the whole catalog, also without a change of networks or nodes.
        """
        self.troubles.clear()
        self.suspicions.note(dict.fromkeys(self.suspects, _SILENT))
        if fully:
            self._catalog._seen = None
        self._read(self._catalog)
        for poll in self._rng().sample(self._of_kafka, 2):
            self._read(poll)
        self._agent.step()

    def look_at_kafka(self) -> None:
        """Run what needs no catalog, which is lost: its lanes still get the news of their inputs.

        The agent does not run; it would start nothing without a catalog.
        """
        for poll in self._of_kafka:
            with suppress(MedusaError):
                poll.read()
        self._mailbox.events.clear()

    def _read(self, poll: CatalogPoll | EndsPoll | BoundaryPoll) -> None:
        try:
            poll.read()
        except MedusaError as error:
            self.troubles.append(f"{type(poll).__name__}: {error}")
        self.process_events()

    def process_events(self) -> None:
        """Run the agent on all queued events."""
        while self._mailbox.events:
            self._agent.step()

    def suspect(self, other: NodeRecord) -> None:
        """Suspect another node in its present life."""
        self.suspects |= {Suspect(other.node, other.started_at_ms)}

    def trust(self) -> None:
        """Suspect nobody any more."""
        self.suspects = frozenset()

    def kill(self, *, expires: bool = True) -> None:
        """Kill the process, and end its session, unless that expires later."""
        for turn in self.turns:
            turn.kill()
        if expires:
            self.store.close()


def _not_logged(event: LoggedEvent) -> None:
    """The event log decides nothing."""
    encode(event)


@contextmanager
def toy_engine(rng: Callable[[], Random]) -> Iterator[None]:
    """Replace Spark by the in-memory engine."""
    pieces = engine.Pieces(rng)
    stands_in: dict[Any, dict[str, Any]] = {
        lane: {
            "Checkpoints": folders.Checkpoints,
            "QueryRunner": engine.Runner,
            "BatchLimit": engine.NoLimit,
            "BackgroundJob": beside.BackgroundJob,
            "withdraw_batch": engine.withdraw_batch,
        },
        start_facts: {"Inspector": looking.Inspector},
        start_state: {"shutil": SimpleNamespace(rmtree=lambda *_, **__: None)},
        lane_query: {
            "emit": looking.emit,
            "Inspector": looking.Inspector,
            "ArrowRows": lambda rows: rows,
            "Steering": engine.Steering,
            "withdraw_batch": engine.withdraw_batch,
        },
        rebuild_query: {
            "emit": looking.emit,
            "Inspector": looking.Inspector,
            "Steering": engine.Steering,
            "LastingQuery": engine.LastingQuery,
            "Log": kafka.NotedLog,
            "divided": pieces.divided,
            "drops_meanwhile": pieces.drops_meanwhile,
            "plan_first_batch": engine.plan_first_batch,
            "plan_next_batch": engine.plan_next_batch,
            "withdraw_batch": engine.withdraw_batch,
        },
        batch_loop: {
            "plan_first_batch": engine.plan_first_batch,
            "plan_next_batch": engine.plan_next_batch,
            "withdraw_batch": engine.withdraw_batch,
        },
        lane_planner: {"threading": SimpleNamespace(Condition=Condition)},
        lane_trimming: {"Trimmer": kafka.Trimmer},
        by_need: {"EVERY_S": 1.0},
        last_marker: {"LogReader": kafka.YieldingReader},
        output_succession: {"LogReader": kafka.YieldingReader},
        perform: {"threading": SimpleNamespace(Thread=Turn, Event=threading.Event)},
        **followers.STANDS_IN,
        beside.BackgroundJob: {"rng": staticmethod(rng)},
        engine.Limits: {"rng": staticmethod(rng)},
    }
    with ExitStack() as undo:
        for place, names in stands_in.items():
            for name, value in names.items():
                undo.enter_context(replaced(place, name, value))
        yield


_planned = planner.plan
_canonical = digest._canonical
_written = lru_cache(20_000)(document.read)
_decoded = lru_cache(50_000)(codec.decode)
_digested: dict[int, tuple[object, Any]] = {}


@lru_cache(20_000)
def loaded(text: str, schemas: tuple[tuple[str, str], ...]) -> Any:
    """A document's network, cached by text."""
    written = _written(text, "net.yaml")
    known = dict(schemas)
    found = {
        reference: document.SchemaText(known[reference.stream], "file")
        for reference in document.references(written)
    }
    return document.check(written, found, {})


_plans: dict[int, tuple[Any, Any]] = {}


def plan_of(network: Any, owner: ParticipantId) -> Any:
    """A network's plan, cached by the object that `loaded` returns."""
    known = _plans.get(id(network))
    if known is None or known[0] is not network:
        known = _plans[id(network)] = network, _planned(network, owner)
    return known[1]


def canonical(value: object, *places: Any) -> Any:
    """A fragment in plain data, cached by object."""
    if not isinstance(value, Fragment) or any(places):
        return _canonical(value, *places)
    known = _digested.get(id(value))
    if known is None or known[0] is not value:
        known = _digested[id(value)] = value, _canonical(value)
    return known[1]


@contextmanager
def remembering() -> Iterator[None]:
    """Cache the reading, planning and digests of documents, the most expensive steps, all pure."""

    def load(text: str, _file: str, schemas: Any, _code: Any) -> Any:
        return loaded(text, tuple(sorted((r.stream, s.text) for r, s in schemas.items())))

    with (
        replaced(document, "load", load),
        replaced(document, "read", _written),
        replaced(planner, "plan", plan_of),
        replaced(digest, "_canonical", canonical),
        replaced(record_store, "decode", _decoded),
    ):
        yield


START = Millis(1_700_000_000_000)
