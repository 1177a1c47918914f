"""Changes of networks as pure functions: stored values → the operations of one atomic step.

Every change of what is deployed or desired replaces the revision counter in the same step. Two
such changes that read the same revision cannot both be done.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from brokers.versioned_store import Create, Delete, Operation, Set, Versioned
from pipeline.catalog.codec import decode, encode
from pipeline.catalog.records import (
    FragmentRecord,
    NetworkRecord,
    NetworkVersionRecord,
    RevisionRecord,
)
from pipeline.errors import BrokenInvariantError, RefusedError, RetryError
from pipeline.ids import (
    FragmentName,
    NetworkLife,
    NetworkName,
    NetworkVersion,
)
from pipeline.names import Znodes


def not_deployed(network: NetworkName, there: Iterable[NetworkName]) -> RefusedError:
    """The refusal of a network that is not deployed; `there` are those that are."""
    return RefusedError(
        "it is not deployed",
        place=f"network {network}",
        hint=f"deployed are: {', '.join(there) or 'none'}.",
    )


def no_fragment(
    network: NetworkName, fragment: FragmentName, there: Iterable[FragmentName]
) -> RefusedError:
    """The refusal of a fragment that a network does not have; `there` are those that it has."""
    return RefusedError(
        f"there is no fragment {fragment}",
        place=f"network {network}",
        hint=f"its fragments are: {', '.join(there) or 'none'}.",
    )


@dataclass(frozen=True, slots=True)
class StoredFragment:
    """The stored values of a fragment: its record, its owner, whether it has a status and has run.

    The version of the status does not matter: a report must not stop a removal.
    """

    record: Versioned
    owner: Versioned | None
    reported: bool
    started: bool


@dataclass(frozen=True, slots=True)
class StoredNetwork:
    """The stored values of a network before a step; `network` None: it is not deployed.

    Args:
        revision: the revision counter.
        folders: the paths that hold versions and fragments, by path.
    """

    revision: Versioned
    network: Versioned | None
    folders: Mapping[str, Versioned]
    fragments: Mapping[FragmentName, StoredFragment]


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
        raise BrokenInvariantError("the version to deploy is not the wanted one", place=name)
    operations: list[Operation] = [bump(znodes, stored.revision)]
    if stored.network is None:
        operations += [
            Create(znodes.network(name), encode(network)),
            Create(znodes.versions(name), b""),
            Create(znodes.fragments(name), b""),
        ]
    else:
        path = znodes.network(name)
        operations.append(Set(path, encode(network), stored.network.version))
    operations.append(Create(znodes.version(name, version.version), encode(version)))
    wanted = {record.fragment: record for record in fragments}
    for fragment in sorted(wanted.keys() | stored.fragments.keys()):
        operations += _fragment_change(
            znodes, (name, fragment), stored.fragments.get(fragment), wanted.get(fragment)
        )
    return tuple(operations)


def check_unchanged(stored: Versioned, expected: NetworkRecord | None) -> None:
    """Make sure that a network is still what it was; None: whatever it is.

    Raises:
        RetryError: it was deployed since.
    """
    if expected is None:
        return
    if decode(NetworkRecord, stored.value, f"network {expected.network}") != expected:
        raise RetryError(
            "it was deployed again meanwhile; topics of it may be deleted by now",
            place=f"network {expected.network}",
            hint="destroy it again; or deploy it once more, which creates what is missing.",
        )


def remove_step(
    znodes: Znodes,
    stored: StoredNetwork,
    network: NetworkName,
    versions: Mapping[str, Versioned],
) -> tuple[Operation, ...]:
    """Remove a network with all that is stored of it; the epoch counters stay.

    `versions` are the stored versions by path.
    """
    if stored.network is None:
        raise BrokenInvariantError("only what is stored can be removed", place=network)
    operations: list[Operation] = [bump(znodes, stored.revision)]
    for name, fragment in sorted(stored.fragments.items()):
        operations += _fragment_change(znodes, (network, name), fragment, None)
    for held in (versions, stored.folders):
        operations += [Delete(path, found.version) for path, found in sorted(held.items())]
    operations.append(Delete(znodes.network(network), stored.network.version))
    return tuple(operations)


def check_unmoved(
    stored: Mapping[FragmentName, StoredFragment], known: tuple[FragmentRecord, ...], place: str
) -> None:
    """Make sure that of each fragment the same is wanted as when a deploy was planned.

    Raises:
        RetryError: somebody paused, resumed or stopped it meanwhile, or it got another topic.
    """
    for record in known:
        found = stored.get(record.fragment)
        if found is not None and found.record.value != encode(record):
            raise RetryError(
                f"fragment {record.fragment} is not what it was when the plan was made",
                place=place,
                hint="somebody else changed it meanwhile: look at it and deploy again.",
            )


def check_expected(
    current: NetworkRecord | None,
    expected: NetworkVersion | None,
    life: NetworkLife,
    place: str,
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
        raise RetryError(
            "it was destroyed and deployed again since the plan was made",
            place=place,
            hint="somebody else changed it meanwhile: look at it and deploy again.",
        )
    if found != expected:
        now = "is not deployed" if found is None else f"is at version {found}"
        then = "was not deployed" if expected is None else f"was at version {expected}"
        raise RetryError(
            f"it {now}, the plan was made when it {then}",
            place=place,
            hint="somebody else changed it meanwhile: look at it and deploy again.",
        )


def bump(znodes: Znodes, revision: Versioned) -> Set:
    """The operation that counts a change of what is deployed or desired."""
    path = znodes.networks()
    count = decode(RevisionRecord, revision.value, path).revision
    return Set(path, encode(RevisionRecord(count + 1)), revision.version)


def put(path: str, value: bytes, found: Versioned | None) -> Create | Set:
    """Create a path that was not there, or replace the value that was."""
    return Create(path, value) if found is None else Set(path, value, found.version)


def _fragment_change(
    znodes: Znodes,
    name: tuple[NetworkName, FragmentName],
    stored: StoredFragment | None,
    wanted: FragmentRecord | None,
) -> list[Operation]:
    path = znodes.fragment(*name)
    if wanted is not None:
        value = encode(wanted)
        if stored is not None and stored.record.value == value:
            return []
        return [put(path, value, None if stored is None else stored.record)]
    if stored is None:
        return []
    gone: list[Operation] = []
    if stored.owner is not None:
        gone.append(Delete(znodes.owner(*name), stored.owner.version))
    if stored.reported:
        gone.append(Delete(znodes.status(*name), None))
    if stored.started:
        gone.append(Delete(znodes.started(*name), None))
    return [*gone, Delete(path, stored.record.version)]
