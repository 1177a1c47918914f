"""Records of a topic that no fragment needs any more, by the last commit markers of its readers.

What a reader needs begins where its last batch began, or where a rebuild of its state begins, if
that is lower: a batch that Spark had not finished is executed again for its state alone. Markers
only advance both, as long as no deploy has decided otherwise. So an older marker needs no less than
the last one, and whatever a lane, a standby or a rebuild reads is at or above it. Whatever is
not known about a reader holds all records: see `held_by`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.ids import FragmentId, Incarnation, Offset
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.deploys import DeployId
from pipeline.markers.positions import by_topic


@dataclass(frozen=True, slots=True)
class Reader:
    """A deployed fragment that reads a topic.

    Args:
        fragment: which one.
        deploy: the deploy of its present version.
        chosen: the incarnation for which the user has chosen something else than to continue its
            state; None: there is no such choice.
        follower: what a follower of it does that may read records below those that the last marker
            needs; empty: nothing.
        marker: its last commit marker; None: it has none, or it was not read.
    """

    fragment: FragmentId
    deploy: DeployId
    chosen: Incarnation | None = None
    follower: str = ""
    marker: CommitMarker | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """The records of a topic that its readers need.

    Args:
        begins: per partition the oldest offset that any of them needs; of a missing partition all
            records are needed.
        held: why all records of the topic are needed; empty: they are not.
    """

    begins: Mapping[int, Offset]
    held: str = ""


def needed(topic_id: str, partitions: int, readers: Iterable[Reader]) -> Need:
    """Compute what the readers of a topic need of it.

    Args:
        topic_id: Kafka's id of the topic.
        partitions: their number.
        readers: all fragments that read it; without any, nothing is known about its use.
    """
    begins: dict[int, Offset] | None = None
    for reader in readers:
        own = _begins(topic_id, reader)
        if isinstance(own, str):
            return Need({}, f"fragment {reader.fragment} {own}")
        there = own if begins is None else begins
        begins = {p: min(own[p], there[p]) for p in range(partitions) if p in own and p in there}
    return Need({}, "no fragment reads it") if begins is None else Need(begins)


def removable(starts: Mapping[int, Offset], now: Need, before: Need | None) -> dict[int, Offset]:
    """Partition → offset below which records are removed; without unchanged partitions.

    Args:
        starts: the oldest offset of each partition.
        now: what is needed.
        before: what was needed a while ago; None: it is not known. A follower that has begun since,
            and that the catalog does not show yet, needs no less.
    """
    if before is None:
        return {}
    return {
        partition: until
        for partition, start in starts.items()
        if partition in now.begins and partition in before.begins
        if (until := min(now.begins[partition], before.begins[partition])) > start
    }


def _begins(topic_id: str, reader: Reader) -> dict[int, Offset] | str:
    """Per partition the oldest offset that a reader needs, or why it needs all of them."""
    if (held := held_by(reader)) is not None or reader.marker is None:
        return held or ""
    marker = reader.marker
    names = {one.topics[0][0] for one in marker.sources if one.topic_id == topic_id}
    if not names:
        return "has no positions in it"
    found: dict[int, Offset] = {}
    starts, needs = by_topic(marker.start, names), by_topic(marker.needed, names)
    for topic, ends in by_topic(marker.end, names).items():
        for partition, end in ends.items():
            known = (of.get(topic, {}).get(partition, end) for of in (starts, needs))
            found[partition] = min(end, *known, found.get(partition, end))
    return found


def held_by(reader: Reader) -> str | None:
    """Why a reader may need any record, as a predicate of the fragment; None: its marker says it.

    A deploy may begin sources anew, or choose a rebuild from all records that are there. It is
    carried out once a marker says so.
    """
    marker = reader.marker
    if marker is None:
        return "has not run"
    if marker.decided != reader.deploy:
        return f"has not run version {reader.deploy.version}"
    if marker.incarnation == reader.chosen:
        return "has not carried out the choice for its state"
    return reader.follower or None
