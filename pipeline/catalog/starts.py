"""Which fragments have run since they were deployed, so that lost commit markers are noticed."""

from contextlib import suppress

from brokers.versioned_store import (
    Check,
    Create,
    NoSuchPathError,
    PathExistsError,
    VersionConflictError,
    VersionedStore,
)
from pipeline.catalog.codec import decode, encode
from pipeline.catalog.records import FragmentRecord, NetworkRecord, OwnerRecord, StartRecord
from pipeline.catalog.snapshot import VersionId
from pipeline.errors import FencedError, RetryError
from pipeline.ids import Epoch, FragmentName, NetworkName
from pipeline.names import Znodes


class Starts:
    """The records of them in the catalog; each goes with its fragment."""

    def __init__(self, store: VersionedStore, znodes: Znodes) -> None:
        self._store = store
        self._znodes = znodes

    def recorded(self, network: NetworkName, fragment: FragmentName) -> bool:
        """Whether a fragment has run since it was deployed."""
        return self._store.get(self._znodes.started(network, fragment)) is not None

    def check(
        self,
        network: NetworkName,
        fragment: FragmentName,
        epoch: Epoch,
        version: VersionId,
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
        of_owner, path = (
            self._znodes.owner(network, fragment),
            self._znodes.fragment(network, fragment),
        )
        of_network = self._znodes.network(network)
        owner, record = self._store.get(of_owner), self._store.get(path)
        deployed = self._store.get(of_network)
        if owner is None or decode(OwnerRecord, owner.value, of_owner).epoch != epoch:
            raise FencedError(f"epoch {epoch} does not own it any more", place=place)
        again = RetryError("it was deployed again before it started", place=place)
        if record is None or deployed is None:
            raise again
        life = decode(NetworkRecord, deployed.value, of_network).life
        now = VersionId(network, life, decode(FragmentRecord, record.value, path).version)
        if now != version:
            raise again

    def record(self, network: NetworkName, fragment: FragmentName, epoch: Epoch) -> None:
        """Keep that a fragment has run. Its owner calls this once a marker of its is committed.

        So the record is never there before a marker, and never of a fragment that was removed
        and deployed again meanwhile. Doing it twice is harmless.

        Raises:
            FencedError: this epoch does not own the fragment any more.
        """
        of_owner = self._znodes.owner(network, fragment)
        found = self._store.get(of_owner)
        fenced = FencedError(
            f"epoch {epoch} does not own it any more", place=f"fragment {network}.{fragment}"
        )
        if found is None or decode(OwnerRecord, found.value, of_owner).epoch != epoch:
            raise fenced
        path = self._znodes.started(network, fragment)
        with suppress(PathExistsError):
            try:
                mine = Check(of_owner, found.version)
                self._store.apply((mine, Create(path, encode(StartRecord(epoch)))))
            except (NoSuchPathError, VersionConflictError) as error:
                raise fenced from error
