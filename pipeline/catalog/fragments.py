"""Fragments: the desired state of each, and the topics that it gets after its deploy."""

from dataclasses import dataclass, replace

from brokers.versioned_store import Operation, Set
from pipeline.catalog.codec import encode
from pipeline.catalog.network_steps import bump, no_fragment, not_deployed
from pipeline.catalog.networks import Networks, read_network
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.records import DesiredState, FragmentRecord, NetworkRecord
from pipeline.catalog.retrying import retrying
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import FragmentName, NetworkName, TopicName
from pipeline.names import FragmentNames


@dataclass(frozen=True, slots=True)
class LaterTopic:
    """A topic of a fragment that was created after its deploy.

    Args:
        of: the fragment.
        topic: its name.
        topic_id: Kafka's id of it.
        made: whether the network has created it, so that `destroy` removes it.
    """

    of: FragmentNames
    topic: TopicName
    topic_id: str
    made: bool


@dataclass(frozen=True, slots=True)
class Fragments:
    """The fragments of the deployed networks."""

    records: RecordStore

    def get(self, network: NetworkName, fragment: FragmentName) -> FragmentRecord | None:
        """One fragment; None if it does not exist."""
        return self.records.read(FragmentRecord, self.records.znodes.fragment(network, fragment))

    def of(self, *networks: NetworkName) -> tuple[FragmentRecord, ...]:
        """The fragments of networks, by name; two requests. None of a network not deployed."""
        path = self.records.znodes.fragment
        return tuple(self.records.read_of_fragments(FragmentRecord, path, networks).values())

    def set_desired(
        self,
        network: NetworkName,
        desired: DesiredState,
        fragments: tuple[FragmentName, ...] | None = None,
        before: DesiredState | None = None,
    ) -> None:
        """Change the desired state of some fragments, or of all of a network, in one step.

        With `before`, only of those of which that was desired so far.

        Raises:
            RefusedError: the network or a fragment is not deployed.
        """
        records, znodes = self.records, self.records.znodes

        def step() -> None:
            stored = read_network(records, network)
            if stored.network is None:
                raise not_deployed(network, (one.network for one in Networks(records).all()))
            operations: list[Operation] = []
            for name in sorted(stored.fragments if fragments is None else fragments):
                if name not in stored.fragments:
                    raise no_fragment(network, name, stored.fragments)
                path, found = znodes.fragment(network, name), stored.fragments[name].record
                record = records.decode(FragmentRecord, found, path)
                if record.desired is not desired and before in {None, record.desired}:
                    changed = encode(replace(record, desired=desired))
                    operations.append(Set(path, changed, found.version))
            if operations:
                records.store.apply((*operations, bump(znodes, stored.revision)))

        retrying(step, f"network {network}")

    def add_topic(self, new: LaterTopic) -> None:
        """Add a topic to the records of fragment and network; nothing happens if it is there.

        To its node this is a change of the ids of its topics, as by a deploy: the lane restarts.

        Raises:
            RefusedError: the fragment is not deployed any more.
            RetryError: it has another topic of that name; or others change the catalog all the
                time.
        """
        place = f"fragment {new.of.network}.{new.of.fragment}"
        retrying(lambda: self._add_topic(new, place), place)

    def _add_topic(self, new: LaterTopic, place: str) -> None:
        records, znodes = self.records, self.records.znodes
        of_network = znodes.network(new.of.network)
        of_fragment = znodes.fragment(new.of.network, new.of.fragment)
        revision = records.store.get(znodes.networks())  # read first: the step checks it
        network, fragment = records.store.get_all((of_network, of_fragment))
        if revision is None or network is None or fragment is None:
            raise RefusedError("it is not deployed any more", place=place)
        deployed = records.decode(NetworkRecord, network, of_network)
        made = {*deployed.made_topics, new.topic} if new.made else deployed.made_topics
        record = records.decode(FragmentRecord, fragment, of_fragment)
        ids = dict(record.topic_ids)
        if ids.setdefault(new.topic, new.topic_id) != new.topic_id:
            raise RetryError(f"topic {new.topic} was made again meanwhile", place=place)
        after = (
            (of_network, network, encode(replace(deployed, made_topics=tuple(sorted(made))))),
            (of_fragment, fragment, encode(replace(record, topic_ids=tuple(sorted(ids.items()))))),
        )
        changed = [Set(path, now, was.version) for path, was, now in after if now != was.value]
        if changed:
            records.store.apply((bump(znodes, revision), *changed))
