"""Changes of networks as pure functions: stored values → the operations of one atomic step.

Every change of a deployed version or desired state replaces the revision counter in the same step.
Of two such changes that read the same revision only one succeeds.
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
    network: NetworkId, fragment: FragmentName, existing: Iterable[FragmentName]
) -> RefusedError:
    """Error for a fragment that a network does not have; `existing` are its fragments."""
    return RefusedError(
        f"there is no fragment {fragment}",
        place=f"network {network}",
        hint=f"its fragments are: {', '.join(existing) or 'none'}.",
    )


@dataclass(frozen=True, slots=True)
class StoredNetwork:
    """The stored values of a network before a step.

    Args:
        revision: the revision counter.
        network: the network's record; None: it is not deployed.
        fragments: the records of its fragments.
        values: of all its existing paths, by path; without its versions.
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
    """Deploy a version: creates, changes and removes fragments."""
    name = network.network
    if (version.network, version.version) != (name, network.version):
        raise BrokenInvariantError(
            "the version to deploy is not that of the network's record", place=f"network {name}"
        )
    record = put(znodes.network(name), encode(network), stored.network)
    counted = bump(znodes.networks(name.participant), stored.revision)
    operations: list[Operation] = [counted, record]
    if stored.network is None:
        operations += [Create(znodes.versions(name), b""), Create(znodes.fragments(name), b"")]
    operations.append(Create(znodes.version(name, version.version), encode(version)))
    new = {record.fragment: record for record in fragments}
    for fragment in sorted(new.keys() | stored.fragments.keys()):
        if fragment not in new:
            operations += _remove_fragment(znodes, stored, name, fragment)
            continue
        value, found = encode(new[fragment]), stored.fragments.get(fragment)
        if found is None or found.value != value:
            operations.append(put(znodes.fragment(name, fragment), value, found))
    return tuple(operations)


def check_unchanged(current: NetworkRecord | None, expected: NetworkRecord | None) -> None:
    """Check that a network's record is unchanged; `expected` None: no check.

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
    """Remove all records of a network except its epoch counters.

    `versions`: the stored versions by path.
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
    stored: Mapping[FragmentName, Versioned], expected: tuple[FragmentRecord, ...], place: str
) -> None:
    """Check that fragment records are the same as when a deploy was planned.

    Raises:
        RetryError: a fragment was paused, resumed or stopped since, or got another topic.
    """
    for record in expected:
        found = stored.get(record.fragment)
        # Not by bytes: an earlier version may have stored it without fields that have a default.
        if found is not None and decode(FragmentRecord, found.value, place) != record:
            what = f"fragment {record.fragment} is not what it was when the plan was made"
            raise _concurrent_change(what, place)


def check_expected(
    current: NetworkRecord | None, expected: NetworkVersion | None, life: NetworkLife, place: str
) -> None:
    """Check that a network has the life and the version that a deploy was planned against.

    Args:
        current: the stored network; None: not deployed.
        expected: the version that the plan was computed against; None: not deployed.
        life: the life that the deploy begins or continues.
        place: names the network, for the error.

    Raises:
        RetryError: it was deployed or removed since.
    """
    found = None if current is None else current.version
    if current is not None and found == expected and current.life != life:
        what = "it was destroyed and deployed again since the plan was made"
        raise _concurrent_change(what, place)
    if found != expected:
        now = "is not deployed" if found is None else f"is at version {found}"
        then = "was not deployed" if expected is None else f"was at version {expected}"
        raise _concurrent_change(f"it {now}, the plan was made when it {then}", place)


def _concurrent_change(what: str, place: str) -> RetryError:
    hint = "somebody else changed it meanwhile: check it and deploy again."
    return RetryError(what, place=place, hint=hint)


def bump(path: str, revision: Versioned) -> Set:
    """The operation that increments the revision counter; `path`: of the counter."""
    count = decode(RevisionRecord, revision.value, path).revision
    return Set(path, encode(RevisionRecord(count + 1)), revision.version)


def put(path: str, value: bytes, found: Versioned | None) -> Create | Set:
    """Create a path, or replace its value if it existed."""
    return Create(path, value) if found is None else Set(path, value, found.version)


def _remove_fragment(
    znodes: Znodes, stored: StoredNetwork, network: NetworkId, fragment: FragmentName
) -> list[Operation]:
    """Remove a fragment. Its status has any version, since reports must not prevent a removal."""
    owner, path = znodes.owner(network, fragment), znodes.fragment(network, fragment)
    versions = {
        owner: stored.values[owner].version if owner in stored.values else None,
        znodes.status(network, fragment): None,
        znodes.started(network, fragment): None,
        znodes.trim(network, fragment): None,
    }
    below = [Delete(one, version) for one, version in versions.items() if one in stored.values]
    return [*below, Delete(path, stored.fragments[fragment].version)]
