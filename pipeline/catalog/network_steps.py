"""Changes of networks as pure functions: stored values → the operations of one atomic step.

Every change of what is deployed or desired replaces the revision counter in the same step. Two
such changes that read the same revision cannot both be done.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from brokers.versioned_store import Create, Delete, Operation, Set, Versioned
from pipeline.catalog.codec import decode, encode
from pipeline.catalog.record_store import Values
from pipeline.catalog.records import (
    FragmentRecord,
    NetworkRecord,
    NetworkVersionRecord,
    RevisionRecord,
)
from pipeline.errors import BrokenInvariantError, RefusedError, RetryError
from pipeline.ids import FragmentName, NetworkId, NetworkLife, NetworkVersion
from pipeline.names import Znodes


def no_fragment(
    network: NetworkId, fragment: FragmentName, there: Iterable[FragmentName]
) -> RefusedError:
    """The refusal of a fragment that a network does not have; `there` are its fragments."""
    return RefusedError(
        f"there is no fragment {fragment}",
        place=f"network {network}",
        hint=f"its fragments are: {', '.join(there) or 'none'}.",
    )


@dataclass(frozen=True, slots=True)
class StoredNetwork:
    """The stored values of a network before a step.

    Args:
        revision: the revision counter.
        network: the network's record; None: it is not deployed.
        fragments: the records of its fragments.
        values: of all its paths that exist, by path; without its versions.
    """

    revision: Versioned
    network: Versioned | None
    fragments: Mapping[FragmentName, Versioned]
    values: Values


def deploy_step(
    znodes: Znodes,
    stored: StoredNetwork,
    network: NetworkRecord,
    version: NetworkVersionRecord,
    fragments: tuple[FragmentRecord, ...],
) -> tuple[Operation, ...]:
    """Make this version the wanted one: creates, changes and removes fragments."""
    name = network.network
    if (version.network, version.version) != (name, network.version):
        raise BrokenInvariantError(
            "the version to deploy is not the wanted one", place=f"network {name}"
        )
    record = put(znodes.network(name), encode(network), stored.network)
    counted = bump(znodes.networks(name.participant), stored.revision)
    operations: list[Operation] = [counted, record]
    if stored.network is None:
        operations += [Create(znodes.versions(name), b""), Create(znodes.fragments(name), b"")]
    operations.append(Create(znodes.version(name, version.version), encode(version)))
    wanted = {record.fragment: record for record in fragments}
    for fragment in sorted(wanted.keys() | stored.fragments.keys()):
        if fragment not in wanted:
            operations += _remove_fragment(znodes, stored, name, fragment)
            continue
        value, found = encode(wanted[fragment]), stored.fragments.get(fragment)
        if found is None or found.value != value:
            operations.append(put(znodes.fragment(name, fragment), value, found))
    return tuple(operations)


def check_unchanged(current: NetworkRecord | None, expected: NetworkRecord | None) -> None:
    """Make sure that a network is still what it was; None: whatever it is.

    Raises:
        RetryError: it was deployed since.
    """
    if expected is not None and current != expected:
        raise RetryError(
            "it was deployed again meanwhile; topics of it may be deleted by now",
            place=f"network {expected.network}",
            hint="destroy it again; or deploy it once more, which creates what is missing.",
        )


def remove_step(
    znodes: Znodes, stored: StoredNetwork, network: NetworkId, versions: Mapping[str, Versioned]
) -> tuple[Operation, ...]:
    """Remove a network with all that is stored of it; the epoch counters stay.

    `versions` are the stored versions by path.
    """
    if stored.network is None:
        raise BrokenInvariantError("only what is stored can be removed", place=f"network {network}")
    operations: list[Operation] = [bump(znodes.networks(network.participant), stored.revision)]
    for fragment in sorted(stored.fragments):
        operations += _remove_fragment(znodes, stored, network, fragment)
    operations += [Delete(path, found.version) for path, found in sorted(versions.items())]
    for path in (znodes.fragments(network), znodes.versions(network)):
        operations += [Delete(path, stored.values[path].version)] if path in stored.values else []
    operations.append(Delete(znodes.network(network), stored.network.version))
    return tuple(operations)


def check_unmoved(
    stored: Mapping[FragmentName, Versioned], known: tuple[FragmentRecord, ...], place: str
) -> None:
    """Make sure that of each fragment the same is wanted as when a deploy was planned.

    Raises:
        RetryError: somebody paused, resumed or stopped it meanwhile, or it got another topic.
    """
    for record in known:
        found = stored.get(record.fragment)
        if found is not None and found.value != encode(record):
            what = f"fragment {record.fragment} is not what it was when the plan was made"
            raise _changed_meanwhile(what, place)


def check_expected(
    current: NetworkRecord | None, expected: NetworkVersion | None, life: NetworkLife, place: str
) -> None:
    """Make sure that a network is in the life and at the version that a deploy was planned against.

    Args:
        current: the stored network; None: not deployed.
        expected: the version that the plan was made against; None: not deployed.
        life: the life that the deploy begins or goes on with.
        place: names the network, for the error.

    Raises:
        RetryError: somebody else deployed or removed it meanwhile.
    """
    found = None if current is None else current.version
    if current is not None and found == expected and current.life != life:
        what = "it was destroyed and deployed again since the plan was made"
        raise _changed_meanwhile(what, place)
    if found != expected:
        now = "is not deployed" if found is None else f"is at version {found}"
        then = "was not deployed" if expected is None else f"was at version {expected}"
        raise _changed_meanwhile(f"it {now}, the plan was made when it {then}", place)


def _changed_meanwhile(what: str, place: str) -> RetryError:
    hint = "somebody else changed it meanwhile: look at it and deploy again."
    return RetryError(what, place=place, hint=hint)


def bump(path: str, revision: Versioned) -> Set:
    """The operation that counts a change of what is deployed or desired; `path`: the counter's."""
    count = decode(RevisionRecord, revision.value, path).revision
    return Set(path, encode(RevisionRecord(count + 1)), revision.version)


def put(path: str, value: bytes, found: Versioned | None) -> Create | Set:
    """Create a path that was not there, or replace the value that was."""
    return Create(path, value) if found is None else Set(path, value, found.version)


def _remove_fragment(
    znodes: Znodes, stored: StoredNetwork, network: NetworkId, fragment: FragmentName
) -> list[Operation]:
    """Remove a fragment. The version of its status does not matter: a report stops no removal."""
    owner, path = znodes.owner(network, fragment), znodes.fragment(network, fragment)
    versions = {
        owner: stored.values[owner].version if owner in stored.values else None,
        znodes.status(network, fragment): None,
        znodes.started(network, fragment): None,
    }
    below = [Delete(one, version) for one, version in versions.items() if one in stored.values]
    return [*below, Delete(path, stored.fragments[fragment].version)]
