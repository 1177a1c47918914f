"""The scene of a history on real servers: commits are read from topics and log files."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from brokers.kafka.cluster import RemoteKafka
from brokers.log_reader import LogReader
from brokers.records import KafkaRecord
from pipeline.catalog.catalog import Catalog
from pipeline.deploy.apply import Servers
from pipeline.deploy.life import random_life
from pipeline.ids import SchemaId, TopicName
from pipeline.markers.codec import decode_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import FragmentNames
from pipeline.planner.digest import fragment_digest
from pipeline.planner.plan import Fragment
from pipeline.system_clock import SystemClock
from schemas.client import RegistryClient
from tests.faults.history import Place
from tests.faults.observe import read_logs
from tests.faults.world import ANSWERS_WITHIN_S
from tests.faults.world import World as Around
from tests.histories.kafka import log
from tests.histories.mirror import Mirror
from tests.histories.recorded import Transaction, executed, transactions
from tests.histories.reference import Wrong
from tests.histories.world import Commit, Deployment

SETTLED_MS = 500
"""After this time a transaction's end is written to every partition."""


@dataclass
class Served:
    """One network on the servers of a world.

    Args:
        around: the servers, and clients of them.
        network: its name.
        watch: called with every committed transaction, in order.
        wrong: called with violations that need no reference.
    """

    around: Around
    network: str
    watch: Callable[[Commit], None] = lambda _: None
    wrong: Callable[[Wrong], None] = lambda _: None
    life: int = 0
    deployments: dict[tuple[int, int], Deployment] = field(default_factory=dict)
    undecided: set[SchemaId] = field(default_factory=set)
    _reported: dict[str, int] = field(default_factory=dict)
    """Number of reported transactions, by the id of the commit-marker topic."""
    _last: dict[str, CommitMarker] = field(default_factory=dict)

    def __post_init__(self) -> None:
        stack = self.around.stack
        log = LogReader(RemoteKafka(stack.kafka_bootstrap_servers), ANSWERS_WITHIN_S)
        catalog: Catalog = self.around.catalog
        registry: RegistryClient = self.around.registry
        admin, clock = self.around.admin, SystemClock()
        self.servers = Servers(catalog, admin, registry, clock, log, random_life)
        bootstrap = stack.kafka_bootstrap_servers
        self.kafka = Mirror(admin, bootstrap, registry.schema_of, self.network)

    # --- looking ----------------------------------------------------------------------------------

    def look(self) -> bool:
        """Read new records and report commits; returns whether there was anything new."""
        before = self._ends()
        known = self._transactions(time.time_ns() // 1_000_000 - SETTLED_MS)
        self.look_at_topics()
        is_new = False
        for transaction, names in sorted(known, key=lambda one: one[0].at_ms):
            commit = self._commit(transaction, names)
            if commit is None:
                break  # of a version whose deploy is in progress
            self._reported[self._id(names.markers)] += 1
            is_new = True
            self._check(commit)
            self.watch(commit)
        return is_new or before != self._ends()

    def look_at_topics(self) -> None:
        """Refresh the topics only."""
        self.kafka.look()

    def destroyed(self) -> None:
        """Delete checkpoints as the command does, here of every node."""
        for node in self.around.others:
            shutil.rmtree(node.checkpoints / self.network, ignore_errors=True)
        self.life += 1
        self._last.clear()

    def _ends(self) -> dict[str, dict[int, int]]:
        return {
            topic_id: {p: int(one.end()) for p, one in enumerate(topic.partitions)}
            for topic_id, topic in self.kafka.by_id.items()
        }

    def _transactions(self, until_ms: int) -> list[tuple[Transaction, FragmentNames]]:
        """The unreported committed transactions of all fragments."""
        names = (name for name in self.kafka.topics if not name.endswith(".markers"))
        data = read_logs(self._folder, names)
        found = []
        for one in self._fragments():
            if one.markers not in self.kafka.topics:
                continue
            count = self._reported.setdefault(self._id(one.markers), 0)
            for markers in read_logs(self._folder, (one.markers,)):
                new = transactions(markers, data)[count:]
                found += [(new_one, one) for new_one in new if new_one.at_ms <= until_ms]
        return found

    @property
    def _folder(self) -> Path:
        return self.around.servers.kafka_logs

    def _id(self, topic: TopicName) -> str:
        return self.kafka.topics[topic].topic_id

    def _fragments(self) -> list[FragmentNames]:
        """Names of all fragments deployed in this life of the network."""
        plans = [one.plan for (life, _), one in self.deployments.items() if life == self.life]
        return list(dict.fromkeys(f.names for plan in plans for f in plan.fragments))

    # --- commits ----------------------------------------------------------------------------------

    def _commit(self, transaction: Transaction, names: FragmentNames) -> Commit | None:
        """A transaction in the form of the checks.

        None: it matches no deployed version, or cannot be read yet.
        """
        written = self._at(transaction.marker)
        found = [self._at(place) for place in transaction.records]
        records = tuple(record for record in found if record is not None)
        if written is None or len(records) != len(found):
            return None
        marker = decode_marker(written.value or b"", str(transaction.marker))
        for one in self._newest_first():
            fragment = _planned(one, names)
            ran = fragment is not None and fragment_digest(fragment) == marker.plan
            if fragment is not None and ran and one.at_ms <= transaction.at_ms:
                version = one.versions[str(names.fragment)]
                batch = executed(marker, fragment)
                return Commit(self.life, version, fragment, marker, batch, records)
        return None

    def _at(self, place: Place) -> KafkaRecord | None:
        topic = self.kafka.topics.get(place.topic)
        if topic is None:
            return None
        return next(iter(log(topic, place.partition).read(place.offset, place.offset + 1)), None)

    def _newest_first(self) -> list[Deployment]:
        mine = {v: one for (life, v), one in self.deployments.items() if life == self.life}
        return [mine[version] for version in sorted(mine, reverse=True)]

    def _check(self, commit: Commit) -> None:
        """Compare the records of a batch with the counts in its marker."""
        name, marker = str(commit.names.fragment), commit.marker
        before = self._last.get(name)
        self._last[name] = marker
        if before is None or before.incarnation != marker.incarnation:
            return
        due = marker.totals.records_out - before.totals.records_out
        came = sum(record.topic == commit.fragment.output.topic for record in commit.records)
        if came != due:
            text = f"batch {marker.batch} counts {due} results, its transaction holds {came}"
            self.wrong(Wrong("marker", name, text))


def _planned(deployment: Deployment, names: FragmentNames) -> Fragment | None:
    found = (one for one in deployment.plan.fragments if one.name == names.fragment)
    return next(found, None)
