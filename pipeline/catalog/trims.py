"""Trims: how far the writers of topics that are kept by need remove records.

A writer records what it removes, and then removes it. The record is written only if no network of
the participant was changed since its readers were looked up. So a reader that is deployed later
finds in the catalog all that may still be removed, and removes it itself before it begins: what is
there after that stays until its own markers release it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from brokers.versioned_store import Check
from pipeline.catalog.codec import encode
from pipeline.catalog.network_steps import put
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.records import TrimRecord
from pipeline.catalog.retrying import LOST
from pipeline.ids import FragmentId, Offset, ParticipantId, TopicName


@dataclass(frozen=True, slots=True)
class Trims:
    """The trims of each participant."""

    records: RecordStore

    def revision(self, participant: ParticipantId) -> int:
        """The version of the revision counter, to be read before the readers of a topic are."""
        path = self.records.znodes.networks(participant)
        return self.records.values(path).required(path).version

    def announce(self, trim: TrimRecord, revision: int) -> bool:
        """Record what is about to be removed, besides what was recorded before.

        Args:
            trim: what is removed, and why no more is.
            revision: as it was before the readers were looked up.

        Returns:
            False if a network was changed since, or another trim of the topic was written: nothing
            may be removed.
        """
        store, znodes = self.records.store, self.records.znodes
        path, participant = znodes.trim(trim.network, trim.fragment), trim.network.participant
        values = self.records.values(path)
        there = values.record(TrimRecord, path)
        if there is not None and there.topic_id == trim.topic_id:
            before = dict(there.before)
            for partition, offset in trim.before:
                before[partition] = max(offset, before.get(partition, offset))
            trim = replace(trim, before=tuple(sorted(before.items())))
        if there is None:
            store.make_parents(znodes.trims(participant))
        elif replace(trim, at_ms=there.at_ms) == there:
            return True
        unchanged = Check(znodes.networks(participant), revision)
        try:
            store.apply((unchanged, put(path, encode(trim), values.get(path))))
        except LOST:
            return False
        return True

    def of(self, participant: ParticipantId) -> tuple[TrimRecord, ...]:
        """The trims of a participant, by fragment; two requests."""
        return self.records.read_below(TrimRecord, self.records.znodes.trims(participant))

    def of_fragments(self, *fragments: FragmentId) -> tuple[TrimRecord, ...]:
        """The trims of some fragments; one request."""
        paths = [self.records.znodes.trim(one.network, one.fragment) for one in fragments]
        found = self.records.read_all(TrimRecord, paths)
        return tuple(one for one in found if one is not None)

    def announced(
        self, participant: ParticipantId, topic_ids: Mapping[TopicName, str]
    ) -> Mapping[TopicName, Mapping[int, Offset]]:
        """What may still be removed of topics: offsets, per partition, below which nothing stays.

        `topic_ids`: the topics, with their ids; a record of another topic of that name has no
        effect.
        """
        return {
            one.topic: dict(one.before)
            for one in self.of(participant)
            if one.before and topic_ids.get(one.topic) == one.topic_id
        }
