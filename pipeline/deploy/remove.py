"""Removal of networks: stops their fragments and, on `destroy`, deletes everything they created.

`destroy` stops the fragments and waits until no node runs one, since a running lane would write
to topics that are being deleted. It deletes topics, then groups, then catalog records: if it is
interrupted, the network is still in the catalog and destroying it again continues.
"""

from dataclasses import dataclass

from pipeline.catalog.catalog import Catalog
from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import DesiredState, NetworkRecord
from pipeline.clock import Deadline
from pipeline.counting import counted
from pipeline.deploy.apply import Report, Servers
from pipeline.deploy.documents import replan_or_none
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import FragmentId, FragmentName, GroupName, NetworkId, NetworkLife, TopicName
from pipeline.names import FragmentNames

_POLL_S = 0.2
_VERSIONS_MAX = 100
"""Number of newest versions that are searched for fragments removed by later versions."""
_AT_REST = frozenset({LaneState.STOPPED, LaneState.FAILED})


@dataclass(frozen=True, slots=True)
class Doomed:
    """The resources that `destroy` removes, and the topics that it keeps.

    Args:
        topics: existing topics that deploys of this network created.
        groups: the consumer groups of its fragments.
        kept_topics: topics that its fragments use and that are kept: its inputs, and topics that
            existed before the first deploy.
    """

    network: NetworkRecord
    topics: tuple[TopicName, ...]
    groups: tuple[GroupName, ...]
    kept_topics: tuple[TopicName, ...]


def deployed(network: NetworkId, catalog: Catalog) -> NetworkRecord:
    """The record of a network.

    Raises:
        RefusedError: it is not deployed; the hint names the deployed ones.
    """
    record = catalog.networks.get(network)
    if record is None:
        others = ", ".join(str(one.network) for one in catalog.networks.of(network.participant))
        raise RefusedError(
            f"network {network} is not deployed",
            hint=f"there is: {others}." if others else "no network is deployed.",
        )
    return record


def stop(network: NetworkId, catalog: Catalog) -> bool:
    """Set the desired state of all fragments, also paused ones, to stopped; False: all were."""
    changes = any(f.desired is not DesiredState.STOPPED for f in catalog.fragments.of(network))
    if changes:
        catalog.fragments.set_desired(network, DesiredState.STOPPED)
    return changes


def await_stopped(
    network: NetworkId,
    servers: Servers,
    deadline: Deadline,
    only: frozenset[FragmentName] | None = None,
) -> None:
    """Wait until no node that is up runs a fragment of a network.

    Args:
        network: the network.
        servers: the catalog and the clock.
        deadline: of the wait.
        only: the fragments to wait for; None: all.

    Raises:
        RetryError: the deadline has passed; names the fragments that still run.
    """
    while running := [
        name for name in _running(network, servers.catalog) if only is None or name in only
    ]:
        deadline.check(f"still running: {', '.join(running)}.")
        servers.clock.sleep(_POLL_S)


def doomed(network: NetworkId, servers: Servers) -> Doomed:
    """Compute what destroying a network would remove; read-only."""
    record = deployed(network, servers.catalog)
    fragments = servers.catalog.fragments.of(network)
    used = sorted({topic for fragment in fragments for topic, _ in fragment.topic_ids})
    existing = servers.topics.describe(record.made_topics)
    names = _every_fragment(record, servers.catalog) | {f.fragment for f in fragments}
    return Doomed(
        network=record,
        topics=tuple(topic for topic in record.made_topics if topic in existing),
        groups=tuple(
            FragmentNames(FragmentId(network, fragment)).group for fragment in sorted(names)
        ),
        kept_topics=tuple(topic for topic in used if topic not in record.made_topics),
    )


def destroy(what: Doomed, servers: Servers, deadline: Deadline, report: Report) -> Doomed:
    """Stop a network and remove everything it created, also since `what` was computed.

    Returns:
        The removed resources.

    Raises:
        RetryError: a fragment did not stop in time, or the network was destroyed and deployed again
            since `what` was computed; nothing was removed. Or it was deployed while its topics
            were being deleted; then it stays in the catalog.
    """
    network, life = what.network.network, what.network.life
    _check_life(deployed(network, servers.catalog), life)
    if stop(network, servers.catalog):
        report("stopping fragments")
    await_stopped(network, servers, deadline)
    what = doomed(network, servers)  # a deploy since then may have created more
    _check_life(what.network, life)
    if what.topics:
        report(f"deleting {counted(len(what.topics), 'topic')}")
        servers.topics.delete_topics(what.topics)
    for group in what.groups:
        servers.topics.delete_group(group)
    servers.catalog.networks.remove(network, what.network)
    return what


def _check_life(found: NetworkRecord, life: NetworkLife) -> None:
    if found.life != life:
        raise RetryError(
            "it was destroyed and deployed again meanwhile",
            place=f"network {found.network}",
            hint="check it, and destroy it again if it is to be removed.",
        )


def _running(network: NetworkId, catalog: Catalog) -> tuple[FragmentName, ...]:
    """The fragments claimed by a node in its present life and not reported stopped or failed."""
    lives = {record.node: record for record in catalog.nodes.of(network.participant)}
    owners = catalog.owners.of(network)
    statuses = {status.fragment: status for status in catalog.statuses.of(network)}
    found = []
    for fragment, owner in owners.items():
        life, status = lives.get(owner.node), statuses.get(fragment.fragment)
        if life is None or not owner.is_of(life):
            continue
        # A report of an earlier epoch does not describe the lane of the present epoch.
        if status is None or status.epoch != owner.epoch or status.state not in _AT_REST:
            found.append(fragment.fragment)
    return tuple(found)


def _every_fragment(record: NetworkRecord, catalog: Catalog) -> set[FragmentName]:
    """The fragments of all versions: the groups of former ones are removed as well."""
    first = max(1, record.version - _VERSIONS_MAX + 1)
    versions = catalog.versions.of(record.network, range(first, record.version + 1))
    plans = (replan_or_none(version) for version in versions)
    # A version without a plan is of another version of this program: its groups expire.
    return {fragment.name for plan in plans if plan is not None for fragment in plan.fragments}
