"""Topics that a fragment gets after its deploy: its lane reads one once the catalog has its id."""

from dataclasses import dataclass, replace

from brokers.versioned_store import Set, VersionedStore
from pipeline.catalog.codec import decode, encode
from pipeline.catalog.records import FragmentRecord, NetworkRecord
from pipeline.catalog.retrying import retrying
from pipeline.catalog.steps import bump
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import TopicName
from pipeline.names import FragmentNames, Znodes


@dataclass(frozen=True, slots=True)
class LaterTopic:
    """A topic of a fragment that exists by now.

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


class LaterTopics:
    """Writes them into the records of fragment and network, in one step with the revision."""

    def __init__(self, store: VersionedStore, znodes: Znodes) -> None:
        self._store = store
        self._znodes = znodes

    def add(self, new: LaterTopic) -> None:
        """Let the fragment know a topic; nothing happens if it does.

        To its node this is a change of the ids of its topics, as by a deploy: the lane restarts.

        Raises:
            RefusedError: the fragment is not deployed any more.
            RetryError: it knows another topic of that name; or others change the catalog all the
                time.
        """
        place = f"fragment {new.of.network}.{new.of.fragment}"
        retrying(lambda: self._add(new, place), place)

    def _add(self, new: LaterTopic, place: str) -> None:
        znodes, get = self._znodes, self._store.get
        of_network = znodes.network(new.of.network)
        of_fragment = znodes.fragment(new.of.network, new.of.fragment)
        revision = get(znodes.networks())  # read first: the step checks it
        network, fragment = get(of_network), get(of_fragment)
        if revision is None or network is None or fragment is None:
            raise RefusedError("it is not deployed any more", place=place)
        deployed = decode(NetworkRecord, network.value, of_network)
        made = {*deployed.made_topics, new.topic} if new.made else deployed.made_topics
        record = decode(FragmentRecord, fragment.value, of_fragment)
        ids = dict(record.topic_ids)
        if ids.setdefault(new.topic, new.topic_id) != new.topic_id:
            raise RetryError(f"topic {new.topic} was made again meanwhile", place=place)
        after = (
            (of_network, network, encode(replace(deployed, made_topics=tuple(sorted(made))))),
            (of_fragment, fragment, encode(replace(record, topic_ids=tuple(sorted(ids.items()))))),
        )
        changed = [Set(path, now, was.version) for path, was, now in after if now != was.value]
        if changed:
            self._store.apply((bump(znodes, revision), *changed))
