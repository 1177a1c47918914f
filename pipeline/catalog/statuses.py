"""Statuses of fragments, reported by their owners."""

from dataclasses import dataclass

from pipeline.catalog.codec import encode
from pipeline.catalog.fragment_status import FragmentStatus
from pipeline.catalog.network_steps import put
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.retrying import retrying
from pipeline.errors import FencedError
from pipeline.ids import FragmentName, NetworkId


@dataclass(frozen=True, slots=True)
class Statuses:
    """The last reported status of each fragment."""

    records: RecordStore

    def get(self, network: NetworkId, fragment: FragmentName) -> FragmentStatus | None:
        """The last status of a fragment; None before the first report."""
        return self.records.read(FragmentStatus, self.records.znodes.status(network, fragment))

    def of(self, *networks: NetworkId) -> tuple[FragmentStatus, ...]:
        """The last statuses of the reported fragments of networks, by name; two requests."""
        path = self.records.znodes.status
        return tuple(self.records.read_of_fragments(FragmentStatus, path, networks).values())

    def report(self, status: FragmentStatus) -> None:
        """Replace the status of a fragment; ignored if the fragment was removed.

        Raises:
            FencedError: a newer epoch has reported already.
        """
        store, znodes = self.records.store, self.records.znodes
        path = znodes.status(status.network, status.fragment)

        def step() -> None:
            stored = self.records.values(path)
            before, found = stored.record(FragmentStatus, path), stored.get(path)
            if before is not None and before.epoch > status.epoch:
                raise FencedError(
                    f"epoch {before.epoch} has reported already, this is epoch {status.epoch}",
                    place=f"fragment {status.network}.{status.fragment}",
                )
            if (
                found is None
                and store.get(znodes.fragment(status.network, status.fragment)) is None
            ):
                return
            store.apply((put(path, encode(status), found),))

        retrying(step, f"fragment {status.network}.{status.fragment}")
