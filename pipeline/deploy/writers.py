"""Writers of output topics: the last one, and successions when another fragment follows. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from pipeline.catalog.records import Begun, FragmentRecord, Succeeds, Writers
from pipeline.ids import FragmentName, NetworkLife, NetworkVersion, TopicId, TopicName
from pipeline.lanes.output_succession import Succession, began_late
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.plan import Plan


def recorded_writers(before: Writers, plan: Plan, topic_ids: Mapping[TopicName, str]) -> Writers:
    """The writers of all output topics, the ones being deployed first.

    Args:
        before: as the last deploy recorded them.
        plan: the plan that is being deployed.
        topic_ids: of its topics.
    """
    found = dict(before)
    for fragment in plan.fragments:
        topic_id = TopicId(topic_ids[fragment.output.topic])
        others = (one for one in found.get(topic_id, ()) if one != fragment.name)
        found[topic_id] = (fragment.name, *others)
    return tuple(sorted(found.items()))


Others = tuple[tuple[FragmentName, ...], tuple[FragmentName, ...]]
"""The other fragments that have written a topic: removed ones, and ones that write another topic
now."""


@dataclass(frozen=True, slots=True)
class Successions:
    """The fragments that begin anew when they start, since others have written their output.

    Args:
        found: the other writers, found by this deploy.
        pending: successions of earlier deploys; the fragment has not begun anew since.
        given_up: the fragments that had such a succession, and return to an output of their own
            without having begun anew.
    """

    found: Mapping[FragmentName, Others] = field(default_factory=dict)
    pending: Mapping[FragmentName, Succeeds] = field(default_factory=dict)
    given_up: frozenset[FragmentName] = frozenset()

    def __contains__(self, name: FragmentName) -> bool:
        """Whether a fragment begins anew when it starts."""
        return name in self.found or name in self.pending

    def of(self, name: FragmentName, version: NetworkVersion, output: TopicId) -> Succeeds | None:
        """The succession for a fragment's record; None if it does not begin anew.

        Args:
            name: of the fragment.
            version: the version that this deploy creates.
            output: the id of the fragment's output topic.
        """
        if name in self.found:
            return (version, output, *self.found[name])
        pending = self.pending.get(name)
        return None if pending is None else (pending[0], output, *pending[2:])

    def begins(self, record: FragmentRecord | None) -> tuple[Begun, ...]:
        """The decisions of earlier deploys about a fragment's inputs that still apply.

        A succession that this deploy finds needs decisions about all inputs. Those of a succession
        that is given up were made for an output that the fragment does not write.

        Args:
            record: the deployed one; None: there is none.
        """
        if record is None or record.fragment in self.found or record.fragment in self.given_up:
            return ()
        return record.begins


def successions(
    plan: Plan,
    recorded: tuple[NetworkLife, Writers],
    records: Mapping[FragmentName, FragmentRecord],
    markers: Mapping[FragmentName, CommitMarker],
    topic_ids: Mapping[TopicName, TopicId],
) -> Successions:
    """Compare the planned writers of topics with the recorded ones.

    A fragment that is recorded as a topic's last writer, but not deployed with it any more, may
    never have written it. So it begins anew, unless no other fragment has ever written there.

    Args:
        plan: the plan to deploy.
        recorded: the life of the network, and the writers as its last deploy recorded them.
        records: the deployed fragments.
        markers: the last ones of the plan's fragments that have run.
        topic_ids: of the topics that exist.
    """
    found: dict[FragmentName, Others] = {}
    pending: dict[FragmentName, Succeeds] = {}
    given_up: set[FragmentName] = set()
    life, writers = recorded[0], dict(recorded[1])
    planned = {fragment.name for fragment in plan.fragments}
    for fragment in plan.fragments:
        name, topic_id = fragment.name, topic_ids.get(fragment.output.topic)
        written_by = writers.get(topic_id, ()) if topic_id is not None else ()
        record = records.get(name)
        others = [one for one in written_by if one != name]
        is_last = written_by[:1] == (name,) and _has_topic(record, topic_id)
        if (others and not is_last) or _began_late(record, life, markers.get(name)):
            found[name] = _split(others, planned)
            continue
        earlier = pending_succession(record, life, markers.get(name))
        if earlier is None:
            continue
        version, output, gone, moved = earlier
        if topic_id == output or name not in written_by:
            pending[name] = version, output, *_split((*gone, *moved), planned)
        else:  # it writes again a topic that it wrote last itself
            given_up.add(name)
    return Successions(found, pending, frozenset(given_up))


def _began_late(
    record: FragmentRecord | None, life: NetworkLife, marker: CommitMarker | None
) -> bool:
    """Whether a marker has replaced the one that the last deploy has decided by."""
    if record is None or marker is None:
        return False
    own = None if record.succeeds is None else Succession(life, *record.succeeds)
    return began_late(marker, record.begun_anew, own)


def _has_topic(record: FragmentRecord | None, topic_id: TopicId | None) -> bool:
    """Whether a fragment is deployed with a topic."""
    return record is not None and topic_id in {one for _, one in record.topic_ids}


def _split(others: Iterable[FragmentName], planned: Collection[FragmentName]) -> Others:
    every = tuple(others)
    gone = tuple(one for one in every if one not in planned)
    return gone, tuple(one for one in every if one in planned)


def pending_succession(
    record: FragmentRecord | None, life: NetworkLife, marker: CommitMarker | None
) -> Succeeds | None:
    """The recorded succession of a fragment; None once the fragment has begun anew.

    Args:
        record: the fragment's; None: it is not deployed.
        life: of its network.
        marker: its last one; None: it has never run.
    """
    if record is None or record.succeeds is None:
        return None
    due = Succession(life, *record.succeeds).is_due(marker, ran_before=False)
    return record.succeeds if due else None
