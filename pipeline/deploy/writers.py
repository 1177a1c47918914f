"""Which fragment wrote an output topic last, and which one begins to write it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.catalog.records import FragmentRecord, Succeeds, Writers
from pipeline.ids import FragmentName, NetworkVersion, TopicId, TopicName
from pipeline.lanes.markers import CommitMarker
from pipeline.lanes.succession import Succession
from pipeline.planner.plan import Plan


def recorded_writers(before: Writers, plan: Plan, topic_ids: Mapping[TopicName, str]) -> Writers:
    """The writers of all output topics, with those that are deployed now in front.

    Args:
        before: as the last deploy recorded them.
        plan: what is deployed now.
        topic_ids: of its topics.
    """
    found = dict(before)
    for fragment in plan.fragments:
        topic_id = TopicId(topic_ids[fragment.output.topic])
        others = (one for one in found.get(topic_id, ()) if one != fragment.name)
        found[topic_id] = (fragment.name, *others)
    return tuple(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Successions:
    """The fragments that begin anew when they start, since others have written their output.

    Args:
        found: what this deploy has found: who else has written the output, the last one first.
        pending: what an earlier one found; the fragment has not begun anew since.
    """

    found: Mapping[FragmentName, tuple[FragmentName, ...]] = field(default_factory=dict)
    pending: Mapping[FragmentName, Succeeds] = field(default_factory=dict)

    def __contains__(self, name: FragmentName) -> bool:
        """Whether a fragment begins anew when it starts."""
        return name in self.found or name in self.pending

    def of(self, name: FragmentName, version: NetworkVersion) -> Succeeds | None:
        """What a fragment's record holds, if it begins anew.

        Args:
            name: of the fragment.
            version: what this deploy makes.
        """
        return (version, self.found[name]) if name in self.found else self.pending.get(name)


def successions(
    plan: Plan,
    writers: Writers,
    records: Mapping[FragmentName, FragmentRecord],
    markers: Mapping[FragmentName, CommitMarker],
    topic_ids: Mapping[TopicName, TopicId],
) -> Successions:
    """Compare who writes a topic now with who has written it.

    Args:
        plan: what is wanted.
        writers: as the last deploy recorded them.
        records: what is deployed.
        markers: the last ones of the plan's fragments that have run.
        topic_ids: of the topics that exist.
    """
    found: dict[FragmentName, tuple[FragmentName, ...]] = {}
    pending: dict[FragmentName, Succeeds] = {}
    known = dict(writers)
    for fragment in plan.fragments:
        name, topic_id = fragment.name, topic_ids.get(fragment.output.topic)
        record = records.get(name)
        written_by = known.get(topic_id, ()) if topic_id is not None else ()
        if topic_id is not None and written_by and written_by[0] != name:
            found[name] = tuple(one for one in written_by if one != name)
        elif record is not None and record.succeeds is not None:
            succeeds = record.succeeds
            if Succession(*succeeds).is_due(markers.get(name), ran_before=False):
                pending[name] = succeeds
    return Successions(found, pending)
