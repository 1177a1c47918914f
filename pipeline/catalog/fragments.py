"""Fragment records: desired states, and topics created after a deploy."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from brokers.versioned_store import Operation, Set
from pipeline.catalog.codec import encode
from pipeline.catalog.network_steps import bump, no_fragment
from pipeline.catalog.networks import not_deployed, read_network
from pipeline.catalog.record_store import RecordStore, Values
from pipeline.catalog.records import DesiredState, FragmentRecord, NetworkRecord, OwnerRecord
from pipeline.catalog.retrying import retrying
from pipeline.catalog.transfers import without_transfers
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import FragmentId, FragmentName, NetworkId, TopicName


@dataclass(frozen=True, slots=True)
class Fragments:
    """The fragments of the deployed networks."""

    records: RecordStore

    def get(self, network: NetworkId, fragment: FragmentName) -> FragmentRecord | None:
        """One fragment; None if it does not exist."""
        return self.records.read(FragmentRecord, self.records.znodes.fragment(network, fragment))

    def of(self, *networks: NetworkId) -> tuple[FragmentRecord, ...]:
        """The fragments of networks, by name; two requests. Undeployed networks have none."""
        path = self.records.znodes.fragment
        return tuple(self.records.read_of_fragments(FragmentRecord, path, networks).values())

    def set_desired(
        self,
        network: NetworkId,
        desired: DesiredState,
        fragments: tuple[FragmentName, ...] | None = None,
        before: DesiredState | None = None,
    ) -> None:
        """Change the desired state of some fragments, or of all of a network, in one step.

        Their moves end. One that is not to run any more loses its place on its node, and has to
        find one again when it is.

        With `before`, only of fragments whose desired state is `before`.

        Raises:
            RefusedError: the network or a fragment is not deployed.
        """
        records, znodes = self.records, self.records.znodes
        of_all = znodes.networks(network.participant)
        of_transfers = znodes.transfers(network.participant)

        def step() -> None:
            stored = read_network(records, network)
            if stored.network is None:
                raise not_deployed(records, network)
            moves = records.values(of_transfers)
            operations: list[Operation] = []
            changed: set[FragmentId] = set()
            for name in sorted(stored.fragments if fragments is None else fragments):
                if name not in stored.fragments:
                    raise no_fragment(network, name, stored.fragments)
                path = znodes.fragment(network, name)
                record = stored.values.required_record(FragmentRecord, path)
                if record.desired is not desired and before in {None, record.desired}:
                    after = encode(replace(record, desired=desired))
                    operations.append(Set(path, after, stored.values[path].version))
                    changed.add(FragmentId(network, name))
                    if desired is not DesiredState.RUNNING:
                        operations += _resting(stored.values, znodes.owner(network, name))
            if operations:
                operations += without_transfers(moves, of_transfers, lambda one: one.id in changed)
                records.store.apply((*operations, bump(of_all, stored.revision)))

        retrying(step, f"network {network}")

    def add_topic(
        self,
        network: NetworkId,
        fragment: FragmentName,
        topic: TopicName,
        topic_id: str,
        *,
        made: bool,
    ) -> None:
        """Add a topic that was created after the deploy to a fragment's record. Idempotent.

        Its node handles this as a deploy that changes topic ids: the lane restarts. `made`: the
        network has created the topic, so that `destroy` removes it.

        Raises:
            RefusedError: the fragment is not deployed any more.
            RetryError: the record contains another topic of that name, or too many concurrent
                changes of the catalog.
        """
        records, znodes, place = self.records, self.records.znodes, f"fragment {network}.{fragment}"
        of_all = znodes.networks(network.participant)
        of_network, of_fragment = znodes.network(network), znodes.fragment(network, fragment)

        def step() -> None:
            revision = records.store.get(of_all)  # read first: the step checks it
            stored = records.values(of_network, of_fragment)
            if revision is None or of_network not in stored or of_fragment not in stored:
                raise RefusedError("it is not deployed any more", place=place)
            deployed = stored.required_record(NetworkRecord, of_network)
            record = stored.required_record(FragmentRecord, of_fragment)
            ids = dict(record.topic_ids)
            if ids.setdefault(topic, topic_id) != topic_id:
                raise RetryError(f"topic {topic} was made again meanwhile", place=place)
            topics = {*deployed.made_topics, topic} if made else deployed.made_topics
            after = {
                of_network: encode(replace(deployed, made_topics=tuple(sorted(topics)))),
                of_fragment: encode(replace(record, topic_ids=tuple(sorted(ids.items())))),
            }
            changed = [
                Set(path, value, stored[path].version)
                for path, value in after.items()
                if value != stored[path].value
            ]
            if changed:
                records.store.apply((bump(of_all, revision), *changed))

        retrying(step, place)


def _resting(values: Values, path: str) -> Iterator[Set]:
    """The mark in the record of a fragment's owner that it has no place; `path`: of the record."""
    owner = values.record(OwnerRecord, path)
    if owner is not None and not owner.rests:
        yield Set(path, encode(replace(owner, rests=True)), values[path].version)
