"""Intent records of unfinished deploys: the topics that they were about to create."""

from collections.abc import Callable
from dataclasses import dataclass

from brokers.versioned_store import Delete
from pipeline.catalog.codec import encode
from pipeline.catalog.network_steps import put
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.records import DeployRecord
from pipeline.catalog.retrying import retrying
from pipeline.ids import NetworkId, TopicName


@dataclass(frozen=True, slots=True)
class Deploys:
    """Intent records, from which a deploy identifies topics created by an interrupted one."""

    records: RecordStore

    def begin(self, network: NetworkId, topics: tuple[TopicName, ...]) -> None:
        """Record the topics that a deploy is about to create, in addition to earlier deploys'."""
        self._change(network, lambda recorded: recorded.union(topics))

    def begun(self, network: NetworkId) -> tuple[TopicName, ...]:
        """The topics that unfinished deploys were about to create."""
        found = self.records.read(DeployRecord, self.records.znodes.deploy(network))
        return found.topics if found else ()

    def end(self, network: NetworkId, topics: tuple[TopicName, ...]) -> None:
        """Remove the topics of a finished deploy: the network's record contains them."""
        self._change(network, lambda recorded: recorded.difference(topics))

    def _change(
        self, network: NetworkId, change: Callable[[set[TopicName]], set[TopicName]]
    ) -> None:
        store, path = self.records.store, self.records.znodes.deploy(network)

        def step() -> None:
            stored = self.records.values(path)
            record, found = stored.record(DeployRecord, path), stored.get(path)
            topics = change(set(record.topics if record else ()))
            if topics:
                value = encode(DeployRecord(tuple(sorted(topics))))
                store.apply((put(path, value, found),))
            elif found is not None:
                store.apply((Delete(path, found.version),))

        retrying(step, f"network {network}")
