"""Starts: which fragments have run since their deploy, so that lost commit markers are noticed."""

from contextlib import suppress
from dataclasses import dataclass

from brokers.versioned_store import (
    Check,
    Create,
    NoSuchPathError,
    PathExistsError,
    VersionConflictError,
)
from pipeline.catalog.codec import encode
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.records import FragmentRecord, NetworkRecord, OwnerRecord, StartRecord
from pipeline.catalog.snapshot import VersionId
from pipeline.errors import FencedError, RetryError
from pipeline.ids import Epoch, FragmentName, NetworkId


@dataclass(frozen=True, slots=True)
class Starts:
    """The start records of fragments; each is removed with its fragment."""

    records: RecordStore

    def recorded(self, network: NetworkId, fragment: FragmentName) -> bool:
        """Whether a fragment has run since it was deployed."""
        return self.records.store.get(self.records.znodes.started(network, fragment)) is not None

    def check(
        self, network: NetworkId, fragment: FragmentName, epoch: Epoch, version: VersionId
    ) -> None:
        """Make sure that a lane is still to start as it is about to.

        Its owner calls this once it has fenced earlier ones, before it writes anything.

        Args:
            network: of the fragment.
            fragment: which one.
            epoch: under which it was claimed.
            version: of the network, as the lane has it, in the life that it is of.

        Raises:
            FencedError: this epoch does not own the fragment any more.
            RetryError: another version of it is deployed, or it is in another life.
        """
        place = f"fragment {network}.{fragment}"
        records, znodes = self.records, self.records.znodes
        of_owner, of_fragment = znodes.owner(network, fragment), znodes.fragment(network, fragment)
        of_network = znodes.network(network)
        found = records.values(of_owner, of_fragment, of_network)
        owner = found.record(OwnerRecord, of_owner)
        if owner is None or owner.epoch != epoch:
            raise FencedError(f"epoch {epoch} does not own it any more", place=place)
        record = found.record(FragmentRecord, of_fragment)
        deployed = found.record(NetworkRecord, of_network)
        now = record and deployed and VersionId(network, deployed.life, record.version)
        if now != version:
            raise RetryError("it was deployed again before it started", place=place)

    def record(self, network: NetworkId, fragment: FragmentName, epoch: Epoch) -> None:
        """Record that a fragment has run. Its owner calls this once a marker of its is committed.

        So the record is never there before a marker, and never of a fragment that was removed
        and deployed again meanwhile. Doing it twice is harmless.

        Raises:
            FencedError: this epoch does not own the fragment any more.
        """
        records, znodes = self.records, self.records.znodes
        of_owner = znodes.owner(network, fragment)
        found = records.values(of_owner)
        owner = found.record(OwnerRecord, of_owner)
        fenced = FencedError(
            f"epoch {epoch} does not own it any more", place=f"fragment {network}.{fragment}"
        )
        if owner is None or owner.epoch != epoch:
            raise fenced
        path = znodes.started(network, fragment)
        with suppress(PathExistsError):
            try:
                mine = Check(of_owner, found[of_owner].version)
                records.store.apply((mine, Create(path, encode(StartRecord(epoch)))))
            except (NoSuchPathError, VersionConflictError) as error:
                raise fenced from error
