"""Probes of an installation: every connection, right and topic. Leaves nothing changed."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from stat import S_IRWXG, S_IRWXO
from typing import TypeVar

from brokers.embedded.jars import spark_jars
from brokers.embedded.java import find_java
from brokers.four_letters import zookeeper_version
from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.cluster import RemoteKafka
from brokers.kafka.errors import NoAccessListsError
from brokers.kafka.rights import KafkaRights
from brokers.kafka.servers import KafkaServers, kafka_servers
from brokers.kafka.versions import requests_of, version_words
from brokers.log_reader import LogReader
from brokers.versioned_store import Create, Delete, PathExistsError
from brokers.zookeeper import ZooKeeperStore, zookeeper_servers
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.fragment_status import FragmentStatus
from pipeline.catalog.records import DesiredState
from pipeline.checkpoint_store.opening import open_store
from pipeline.counting import counted
from pipeline.deploy.documents import replan
from pipeline.deploy.expiring import Search
from pipeline.doctor.facts import (
    Check,
    Observed,
    ObservedAccess,
    ObservedNetwork,
    Trouble,
)
from pipeline.doctor.lookups import (
    clocks_of,
    expiring_facts,
    overdue_of,
    queued_of,
    replicas,
    secondaries_of,
    with_state,
)
from pipeline.doctor.topics import TopicProbe
from pipeline.errors import EnvironmentProblem, MedusaError, NotAllowedError
from pipeline.heartbeats.clocks import ClockOffset
from pipeline.ids import (
    NetworkId,
    ParticipantId,
    TopicName,
)
from pipeline.names import Znodes, doctor_group, doctor_transactions, events_topic, heartbeats_topic
from pipeline.planner.failures import Replicas
from pipeline.planner.plan import Plan
from pipeline.secrets import is_reference
from pipeline.settings import SETTINGS, Kind, Settings
from pipeline.system_clock import SystemClock
from schemas.client import RegistryClient
from schemas.transport import registry_address

T = TypeVar("T")
WITHIN_S = 5.0
TRANSACTIONS = TopicName("__transaction_state")
"""Kafka's own topic of transactions, which each commit writes."""

PlanOfDocument = Callable[[RegistryClient], Plan | None]
"""Plans the project's document, which may name schemas of the registry; None: there is none."""


@dataclass
class Probes:
    """Probes of everything that the settings name.

    Args:
        settings: addresses and folders.
        spark: describes a cluster's master; None: Spark runs on this machine.
    """

    settings: Settings
    spark: Callable[[], str] | None
    checks: list[Check] = field(default_factory=list)
    undo: ExitStack = field(default_factory=ExitStack)

    def observe(self, document: PlanOfDocument) -> Observed:
        """Run all probes; a failure is an observed fact."""
        with self.undo:
            self._machine()
            brokers = self._kafka()
            access = None if brokers is None else self.access(brokers, KafkaRights)
            catalog = self._zookeeper()
            registry = self._registry()
            if self.spark is not None:
                self._see("Spark", f"Spark {self.settings.spark_master}", self.spark)
            networks = self._networks(catalog, registry, document, brokers)
            nodes = (
                self._try("nodes", "", lambda: len(catalog.nodes.of(self._participant)))
                if catalog
                else None
            )
            readable = tuple(_readable(self.settings))
            shared = () if brokers is None else self._shared(brokers)
            clocks = () if brokers is None or catalog is None else self._clocks(catalog, brokers)
            checks = tuple(self.checks)
            return Observed(checks, networks, nodes, readable, access, shared, clocks)

    @property
    def _participant(self) -> ParticipantId:
        return ParticipantId(self.settings.participant)

    def _see(self, name: str, place: str, check: Callable[[], str]) -> bool:
        """Run a check and record its result; returns whether it succeeded."""
        try:
            self.checks.append(Check(name, place, check()))
        except MedusaError as error:
            self.checks.append(Check(name, place, "", Trouble.of(error)))
            return False
        return True

    def _try(self, name: str, place: str, check: Callable[[], T]) -> T | None:
        """Return the result of a call; only a failure is recorded."""
        try:
            return check()
        except MedusaError as error:
            self.checks.append(Check(name, place, "", Trouble.of(error)))
            return None

    def _machine(self) -> None:
        java = self._try("Java", "", lambda: find_java(os.environ))
        if java is not None:
            self.checks.append(Check("Java", str(java.executable), f"version {java.version}"))
        cache = Path(self.settings.cache)
        self._see("jars", str(cache), lambda: f"all {len(spark_jars(cache))} for Spark are there")
        for name in ("data", "checkpoints"):
            folder = getattr(self.settings, name)
            self._see(f"folder {name}", folder, partial(_writable, Path(folder)))
        if self.settings.store_url:
            self._see("checkpoint store", self.settings.store_url, self._store)

    def _store(self) -> str:
        store = open_store(self.settings)
        if store is not None:
            store.check(self.settings.participant)
        return "can be read and written"

    def _kafka(self) -> KafkaServers | None:
        place = f"Kafka {self.settings.kafka_bootstrap_servers}"
        brokers = self._try("Kafka", place, lambda: kafka_servers(self.settings))
        if brokers is None:
            return None

        def connect() -> str:
            cluster = KafkaAdmin(brokers, WITHIN_S).cluster_id()
            user = f" as {brokers.sasl.login.user}" if brokers.sasl else ""
            return f"cluster {cluster}, version {_kafka_version(brokers)}, {brokers.protocol}{user}"

        if not self._see("Kafka, connection", place, connect):
            return None
        rights = KafkaRights(brokers, WITHIN_S)

        def transactions() -> str:
            _raise(rights.why_no_transactions(doctor_transactions(self._participant)))
            return "may be written"

        def groups() -> str:
            _raise(rights.why_no_group(doctor_group(self._participant)))
            return "may be looked at"

        self._see("Kafka, transactions", place, transactions)
        self._see("Kafka, groups", place, groups)
        return brokers

    def access(
        self, brokers: KafkaServers, rights: Callable[[KafkaServers, float], KafkaRights]
    ) -> ObservedAccess | None:
        """Access control lists of topics; None: there are none, or they may not be read.

        A lane does not need them, so neither is a failure.
        """
        rules = rights(brokers, WITHIN_S).topic_rules()
        trouble = None
        match rules:
            case NoAccessListsError():
                words = "none: whoever reaches the brokers may write into every topic"
            case NotAllowedError():
                words = "not told to us, so nor who else may write: that takes Describe on Cluster"
            case MedusaError():
                words, trouble = "", Trouble.of(rules)
            case _:
                words = f"{counted(len(rules), 'rule')} about topics"
        self.checks.append(Check("Kafka, access lists", f"Kafka {brokers}", words, trouble))
        return None if isinstance(rules, MedusaError) else ObservedAccess(rules, brokers.principal)

    def _zookeeper(self) -> Catalog | None:
        place = f"ZooKeeper {self.settings.zookeeper_connect}"
        servers = self._try("ZooKeeper", place, lambda: zookeeper_servers(self.settings))
        if servers is None:
            return None
        store = self._try(
            "ZooKeeper, connection", place, lambda: ZooKeeperStore.connect(servers, WITHIN_S)
        )
        if store is None:
            return None
        self.undo.callback(store.close)
        version = ""
        with suppress(OSError):
            version = zookeeper_version(servers, WITHIN_S)
        how = ", encrypted" if servers.tls else ""
        user = f", as {servers.login.user}" if servers.login else ""
        words = f"version {version or 'not told'}{how}{user}"
        self.checks.append(Check("ZooKeeper, connection", place, words))

        def write() -> str:
            path = Znodes("").doctor()
            with suppress(PathExistsError):
                store.apply((Create(path, b"", ephemeral=True),))
            store.apply((Delete(path, None),))
            return "may be written"

        catalog = Catalog(store, Znodes(""))

        def read() -> str:
            if store.get(Znodes("").format()) is None:
                return "there is none yet: the first deploy or node makes it"
            catalog.format.ensure()
            own = len(catalog.networks.of(self._participant))
            return f"format {catalog.format.current()}, {own} networks"

        written = self._see("ZooKeeper, rights", place, write)
        readable = self._see("catalog", place, read)
        return catalog if written and readable else None

    def _registry(self) -> RegistryClient | None:
        place = f"schema registry {self.settings.registry_url}"

        def connect() -> RegistryClient:
            client = RegistryClient(registry_address(self.settings), WITHIN_S)
            self.undo.callback(client.close)
            return client

        client = self._try("schema registry", place, connect)
        if client is None:
            return None
        good = self._see(
            "schema registry", place, lambda: f"answers, {len(client.subjects())} subjects"
        )
        return client if good else None

    def _networks(
        self,
        catalog: Catalog | None,
        registry: RegistryClient | None,
        document: PlanOfDocument,
        brokers: KafkaServers | None,
    ) -> tuple[ObservedNetwork, ...]:
        """The participant's networks of the catalog, and the project's; none without brokers."""
        if brokers is None:
            return ()
        found = self._deployed(catalog) if catalog is not None else {}
        if registry is not None:
            plan = self._try("document", "", lambda: document(registry))
            if plan is not None and plan.network not in found:
                found[plan.network] = ObservedNetwork(plan.network, False, plan.auto_create), plan
        if catalog is not None:
            log = LogReader(RemoteKafka(brokers, clock := SystemClock()), WITHIN_S)
            search = Search(KafkaAdmin(brokers, WITHIN_S), log, clock, WITHIN_S)
            overdue = self._try(
                "steps of lanes", "", lambda: overdue_of(catalog, self._participant, log)
            )
            expiring = self._try(
                "retention", "", lambda: expiring_facts(catalog, tuple(found), search)
            )
            found = {
                name: (
                    replace(
                        seen,
                        expiring=(expiring or {}).get(name, {}),
                        overdue=(overdue or {}).get(name, {}),
                    ),
                    plan,
                )
                for name, (seen, plan) in found.items()
            }
        probe = TopicProbe(KafkaAdmin(brokers, WITHIN_S), KafkaRights(brokers, WITHIN_S))
        return tuple(
            seen if plan is None else probe.of(seen, plan) for seen, plan in found.values()
        )

    def _shared(self, brokers: KafkaServers) -> tuple[Replicas, ...]:
        """The topics that all networks need."""
        admin = KafkaAdmin(brokers, WITHIN_S)
        own = events_topic(self._participant), heartbeats_topic(self._participant)
        found: list[Replicas] = []
        for topics in (own, (TRANSACTIONS,)):
            with suppress(MedusaError):  # a user who may not see them can do without
                found += replicas(admin, topics)
        return tuple(found)

    def _clocks(self, catalog: Catalog, brokers: KafkaServers) -> tuple[ClockOffset, ...]:
        """The offsets of clocks."""
        admin, clock = KafkaAdmin(brokers, WITHIN_S), SystemClock()
        log = LogReader(RemoteKafka(brokers, clock), WITHIN_S)
        found = self._try(
            "clocks", "", lambda: clocks_of(catalog, self._participant, admin, log, clock)
        )
        return found or ()

    def _deployed(self, catalog: Catalog) -> dict[NetworkId, tuple[ObservedNetwork, Plan | None]]:
        found: dict[NetworkId, tuple[ObservedNetwork, Plan | None]] = {}
        for record, version in catalog.versions.deployed(self._participant):
            seen = ObservedNetwork(record.network, deployed=True, auto_create=True)
            try:
                plan = replan(version) if version is not None else None
            except MedusaError as error:
                seen = ObservedNetwork(record.network, True, True, (), Trouble.of(error))
                plan = None
            found[record.network] = seen, plan
        planned = {name: (seen, plan) for name, (seen, plan) in found.items() if plan is not None}
        if not planned:  # there may be no catalog yet
            return found
        placed = self._try("placement", "", lambda: catalog.snapshot(self._participant))
        secondaries = {} if placed is None else secondaries_of(placed)
        queued = {} if placed is None else queued_of(placed)
        fragments, statuses = catalog.fragments.of(*planned), catalog.statuses.of(*planned)
        for name, (seen, plan) in planned.items():
            own = [one for one in fragments if one.network == name]
            known = {topic: topic_id for one in own for topic, topic_id in one.topic_ids}
            paused = tuple(one.fragment for one in own if one.desired is DesiredState.PAUSED)
            writers = _writers(plan, [one for one in statuses if one.network == name])
            found[name] = (
                replace(
                    seen,
                    writers=writers,
                    known=known,
                    paused=paused,
                    secondaries=with_state(plan, secondaries),
                    queued={one.fragment: of for one, of in queued.items() if one.network == name},
                ),
                plan,
            )
        return found


def _writers(plan: Plan, statuses: Iterable[FragmentStatus]) -> dict[TopicName, FragmentStatus]:
    """The last reported status of a plan's fragments, by output topic."""
    topics = {fragment.name: fragment.output.topic for fragment in plan.fragments}
    return {topics[one.fragment]: one for one in statuses if one.fragment in topics}


def _raise(error: MedusaError | None) -> None:
    if error is not None:
        raise error


def _kafka_version(brokers: KafkaServers) -> str:
    try:
        return version_words(requests_of(brokers, WITHIN_S))
    except OSError:
        return "not told"


def _writable(folder: Path) -> str:
    """Check that a folder can be written or created.

    Raises:
        EnvironmentProblem: it cannot.
    """
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise EnvironmentProblem(
            "the folder cannot be written",
            place=str(folder),
            hint="make it writable, or choose another one with the settings data and checkpoints.",
        )
    return "can be written"


def _readable(settings: Settings) -> Iterator[tuple[str, str]]:
    """Settings whose secret is in a file that other users may read."""
    sources = dict(settings.sources)
    for setting in SETTINGS:
        if setting.kind is not Kind.SECRET:
            continue
        secret = getattr(settings, setting.field)
        source = sources.get(setting.name, "")
        file = secret.file
        if secret and not is_reference(secret.written) and " file " in source:
            file = Path(source.partition(" file ")[2])
        with suppress(OSError):
            if file is not None and file.stat().st_mode & (S_IRWXG | S_IRWXO):
                yield setting.name, str(file)
