"""Facts of the fragments and topics of a participant, from the catalog and Kafka."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from brokers.kafka_interface import NoSuchTopicError, TopicAdmin
from brokers.log_reader import LogReader
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.catalog.secondaries import open_to
from pipeline.catalog.snapshot import CatalogSnapshot
from pipeline.clock import Clock
from pipeline.deploy.expiring import Search, reported_expiring
from pipeline.doctor.facts import ObservedQueue, ObservedSecondaries
from pipeline.doctor.failures import replicas_of
from pipeline.errors import NotAllowedError
from pipeline.heartbeats.clocks import ClockOffset, offset_of_reader, offsets_of_nodes
from pipeline.heartbeats.last_steps import RECORDS_EACH, overdue_steps
from pipeline.heartbeats.steps import StepAge
from pipeline.ids import (
    FragmentId,
    FragmentName,
    NetworkId,
    NetworkName,
    Offset,
    ParticipantId,
    TopicName,
)
from pipeline.lanes.expiring_text import advice, message
from pipeline.names import heartbeats_topic
from pipeline.planner.existing_topics import BY_BROKER, STAMPS
from pipeline.planner.failures import Replicas
from pipeline.planner.plan import Plan

READ_S: Final = 0.5
"""So long heartbeats are awaited: a node sends ten a second."""


def replicas(admin: TopicAdmin, topics: Sequence[TopicName]) -> tuple[Replicas, ...]:
    """The replication of those topics that exist, all of them written."""
    described, configs = admin.describe(topics), admin.topic_configs(topics)
    return tuple(
        replicas_of(name, one.replication, configs.get(name, {}), written=True)
        for name, one in described.items()
    )


def secondaries_of(found: CatalogSnapshot) -> dict[FragmentId, ObservedSecondaries]:
    """The secondaries of the fragments that should run, as if each had a state."""
    there, level = found.secondaries(), found.level
    return {
        one.id: ObservedSecondaries(
            has_state=True,
            wanted=one.record.reliability.secondaries,
            there=len(nodes),
            level=sum((one.id, node) in level for node in nodes),
        )
        for one in found.fragments
        if one.running
        for nodes in [there.get(one.id, ())]
    }


def queued_of(found: CatalogSnapshot) -> dict[FragmentId, ObservedQueue]:
    """The fragments that no node has room for, each with the nodes that may run it."""
    return {
        one.id: ObservedQueue(
            one.record.priority,
            tuple(
                (node.node, node.most_fragments)
                for node in open_to(one.record, found.nodes, found.drained)
            ),
        )
        for one in found.fragments
        if one.id in found.placement.queued
    }


def with_state(
    plan: Plan, found: Mapping[FragmentId, ObservedSecondaries]
) -> dict[FragmentName, ObservedSecondaries]:
    """The secondaries of a network's fragments."""
    return {
        fragment.name: replace(one, has_state=fragment.stateful_box is not None)
        for fragment in plan.fragments
        if (one := found.get(FragmentId(plan.network, fragment.name))) is not None
    }


def overdue_of(
    catalog: Catalog, participant: ParticipantId, log: LogReader
) -> dict[NetworkId, dict[FragmentName, StepAge]]:
    """The steps of lanes that take too long, by network and fragment."""
    lives = {one.node: one.started_at_ms for one in catalog.nodes.of(participant)}
    found: dict[NetworkId, dict[FragmentName, StepAge]] = {}
    try:
        overdue = overdue_steps(log, participant, lives)
    except NotAllowedError:  # nodes may read heartbeats; this user need not
        return found
    for step in overdue.values():
        name, _, fragment = step.fragment.partition(".")
        network = NetworkId(participant, NetworkName(name))
        found.setdefault(network, {})[FragmentName(fragment)] = step
    return found


def clocks_of(
    catalog: Catalog, participant: ParticipantId, topics: TopicAdmin, log: LogReader, clock: Clock
) -> tuple[ClockOffset, ...]:
    """The offsets of the clocks of nodes that are up and of this machine, by heartbeats.

    Nothing is known of them if the broker does not stamp the heartbeats, this user may not read
    them, or none comes; nor of brokers other than the leader of their topic.
    """
    lives = {one.node: one.started_at_ms for one in catalog.nodes.of(participant)}
    topic = heartbeats_topic(participant)
    try:
        if not lives or topics.topic_configs((topic,)).get(topic, {}).get(STAMPS) != BY_BROKER:
            return ()
        began_ms, before = clock.now_ms(), log.last(topic)
        clock.sleep(READ_S)
        records = log.newest(topic, RECORDS_EACH * len(lives))
    except (NotAllowedError, NoSuchTopicError):
        return ()
    last = Offset(-1) if before is None else before.offset
    come = [record for record in records if record.offset > last]
    here = offset_of_reader(come, began_ms, clock.now_ms())
    return (*offsets_of_nodes(come, lives), *(() if here is None else (here,)))


def expiring_facts(
    catalog: Catalog, networks: Sequence[NetworkId], search: Search
) -> dict[NetworkId, dict[FragmentName, tuple[tuple[str, str], ...]]]:
    """Messages and advice about records that retention removes, by network and fragment."""
    records, statuses = catalog.fragments.of(*networks), catalog.statuses.of(*networks)
    nodes = [node for network in networks for node in catalog.nodes.of(network.participant)]
    by_fragment = {(one.network, one.fragment): one for one in statuses}
    lives = {network: one.life for network in networks if (one := catalog.networks.get(network))}
    last = {r: by_fragment.get((r.network, r.fragment)) for r in records}
    known = {record: reported_expiring(status, nodes) for record, status in last.items()}
    searched = search.of([(r, last[r]) for r, of in known.items() if of is None], lives.get)
    run = [r for r, of in known.items() if of is not None and _runs(last[r])]
    rebuilt = search.of_running(run)
    found: dict[NetworkId, dict[FragmentName, tuple[tuple[str, str], ...]]] = {}
    now_ms = search.clock.now_ms()
    for record, of in known.items():
        fragment = FragmentId(record.network, record.fragment)
        expiring = searched.get(fragment, ()) if of is None else of
        every = [(one, "") for one in expiring]
        every += [(one, LaneState.RUNNING.value) for one in rebuilt.get(fragment, ())]
        found.setdefault(record.network, {})[record.fragment] = tuple(
            (message(one, now_ms), advice(one, str(fragment), state)) for one, state in every
        )
    return found


def _runs(status: FragmentStatus | None) -> bool:
    return status is not None and status.state is LaneState.RUNNING
