"""Takes a network away again: first its jobs, then, on `destroy`, what it made.

`destroy` stops the fragments and waits until no node runs one, since a running lane would write
into topics that go. Then topics, then groups, then the catalog: if it dies in between, the network
is still in the catalog and destroying it again goes on.
"""

from dataclasses import dataclass

from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import DesiredState, LaneState, NetworkRecord
from pipeline.clock import Deadline
from pipeline.counting import counted
from pipeline.deploy.apply import Servers, Tell
from pipeline.deploy.documents import replan_or_none
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import FragmentId, FragmentName, GroupName, NetworkId, NetworkLife, TopicName
from pipeline.names import FragmentNames

_POLL_S = 0.2
_VERSIONS_MAX = 100
"""How many of the newest versions are looked through for fragments that are gone by now."""
_AT_REST = frozenset({LaneState.STOPPED, LaneState.FAILED})


@dataclass(frozen=True, slots=True)
class Doomed:
    """What a `destroy` removes, and what it leaves.

    Args:
        topics: those that deploys of this network created and that still exist.
        groups: the consumer groups of its fragments.
        kept_topics: topics that its fragments use and that stay: its inputs, and what was there
            before the first deploy.
    """

    network: NetworkRecord
    topics: tuple[TopicName, ...]
    groups: tuple[GroupName, ...]
    kept_topics: tuple[TopicName, ...]


def deployed(network: NetworkId, catalog: Catalog) -> NetworkRecord:
    """The record of a network.

    Raises:
        RefusedError: it is not deployed; names those that are.
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
    """Say that nothing of a network shall run, paused or not; whether that changes anything."""
    wanted = any(f.desired is not DesiredState.STOPPED for f in catalog.fragments.of(network))
    if wanted:
        catalog.fragments.set_desired(network, DesiredState.STOPPED)
    return wanted


def await_stopped(
    network: NetworkId,
    servers: Servers,
    deadline: Deadline,
    only: frozenset[FragmentName] | None = None,
) -> None:
    """Wait until no node that is up runs a fragment of a network.

    Args:
        network: which network.
        servers: whom to ask.
        deadline: how long to wait.
        only: the fragments that are to stop; None: all.

    Raises:
        RetryError: the time is over; says which still run.
    """
    while running := [
        name for name in _running(network, servers.catalog) if only is None or name in only
    ]:
        deadline.check(f"still running: {', '.join(running)}.")
        servers.clock.sleep(_POLL_S)


def doomed(network: NetworkId, servers: Servers) -> Doomed:
    """What destroying a network would remove; changes nothing."""
    record = deployed(network, servers.catalog)
    fragments = servers.catalog.fragments.of(network)
    used = sorted({topic for fragment in fragments for topic, _ in fragment.topic_ids})
    there = servers.topics.describe(record.made_topics)
    names = _every_fragment(record, servers.catalog) | {f.fragment for f in fragments}
    return Doomed(
        network=record,
        topics=tuple(topic for topic in record.made_topics if topic in there),
        groups=tuple(
            FragmentNames(FragmentId(network, fragment)).group for fragment in sorted(names)
        ),
        kept_topics=tuple(topic for topic in used if topic not in record.made_topics),
    )


def destroy(what: Doomed, servers: Servers, deadline: Deadline, tell: Tell) -> Doomed:
    """Stop a network and remove what it made, also since it was looked at.

    Returns:
        What was removed.

    Raises:
        RetryError: a fragment did not stop in time, or somebody else destroyed the network and
            deployed it again meanwhile; nothing was removed. Or it was deployed while its topics
            were being deleted; then it stays in the catalog.
    """
    network, life = what.network.network, what.network.life
    _check_life(deployed(network, servers.catalog), life)
    if stop(network, servers.catalog):
        tell("stopping fragments")
    await_stopped(network, servers, deadline)
    what = doomed(network, servers)  # a deploy since then may have made more
    _check_life(what.network, life)
    if what.topics:
        tell(f"deleting {counted(len(what.topics), 'topic')}")
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
            hint="look at it, and destroy it again if it is to go.",
        )


def _running(network: NetworkId, catalog: Catalog) -> tuple[FragmentName, ...]:
    """The fragments that a node took up in its present life and has not reported at rest."""
    lives = {record.node: record for record in catalog.nodes.of(network.participant)}
    owners = catalog.owners.of(network)
    statuses = {status.fragment: status for status in catalog.statuses.of(network)}
    found = []
    for fragment, owner in owners.items():
        life, status = lives.get(owner.node), statuses.get(fragment.fragment)
        if life is None or not owner.is_of(life):
            continue
        # A report of an earlier epoch says nothing about the one that was claimed since.
        if status is None or status.epoch != owner.epoch or status.state not in _AT_REST:
            found.append(fragment.fragment)
    return tuple(found)


def _every_fragment(record: NetworkRecord, catalog: Catalog) -> set[FragmentName]:
    """The fragments of all versions: what a former one made is to go as well."""
    first = max(1, record.version - _VERSIONS_MAX + 1)
    versions = catalog.versions.of(record.network, range(first, record.version + 1))
    plans = (replan_or_none(version) for version in versions)
    # Without a plan it was planned by another version of this program: its groups expire.
    return {fragment.name for plan in plans if plan is not None for fragment in plan.fragments}
