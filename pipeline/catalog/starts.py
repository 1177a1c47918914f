"""Start records: fragments that have run since their deploy, to detect lost commit markers."""

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
        """Check that a starting lane has the current epoch and version.

        Its owner calls this after it has fenced earlier owners, before it writes anything.

        Args:
            network: of the fragment.
            fragment: its name.
            epoch: of the lane's claim.
            version: the version that the lane is about to run.

        Raises:
            FencedError: this epoch does not own the fragment any more.
            RetryError: another version of it is deployed, or its network is in another life.
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
        """Record that a fragment has run. Its owner calls this after its marker is committed.

        So the record never precedes a marker, and never belongs to a fragment that was removed and
        deployed again since. Idempotent.

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
