"""What a node knows of the plans of its fragments: catalog versions, planned again."""

import threading
from collections.abc import Callable, Mapping

from pipeline.boundaries.profile import DerivedInput, profile
from pipeline.catalog.records import FragmentRecord, NetworkRecord, NetworkVersionRecord
from pipeline.errors import BrokenInvariantError, RetryError
from pipeline.ids import NetworkName, NetworkVersion, ParticipantId, StreamName, TopicName
from pipeline.lanes.events import FragmentId
from pipeline.lanes.sources import Begin
from pipeline.lanes.start import StateChoice
from pipeline.names import FragmentNames
from pipeline.planner.plan import Fragment, Plan

VERSIONS_KEPT = 64
Assigned = dict[FragmentId, tuple[NetworkRecord, FragmentRecord]]
Planner = Callable[[NetworkVersionRecord, ParticipantId], Plan]


def state_choice(record: FragmentRecord) -> StateChoice | None:
    """The choice that a fragment's record holds, as a lane wants it."""
    return None if record.choice is None else StateChoice(*record.choice)


class Plans:
    """Safe to use from the agent's loop, its lanes and its polls at once."""

    def __init__(
        self,
        version: Callable[[NetworkName, NetworkVersion], NetworkVersionRecord | None],
        planner: Planner,
    ) -> None:
        self._version = version
        self._planner = planner
        self._lock = threading.Lock()
        self._records: Assigned = {}
        self._elsewhere: Assigned = {}
        self._planned: dict[tuple[NetworkName, NetworkVersion], Plan] = {}

    def assign(
        self,
        records: tuple[tuple[NetworkRecord, FragmentRecord], ...],
        elsewhere: tuple[tuple[NetworkRecord, FragmentRecord], ...] = (),
    ) -> None:
        """Remember the fragments that the catalog assigns to this node, and forget all others.

        `elsewhere`: those that other nodes run.

        Raises:
            MedusaError: a version cannot be read or planned.
        """
        known = {FragmentId(r.network, r.fragment): (network, r) for network, r in records}
        with self._lock:
            self._records = known
            self._elsewhere = {FragmentId(r.network, r.fragment): (n, r) for n, r in elsewhere}
        for fragment, (_, record) in known.items():
            self.fragment(fragment, record.version)

    def fragment(self, fragment: FragmentId, version: NetworkVersion) -> Fragment:
        """The plan of a fragment as one version of its network has it."""
        for found in self._plan(fragment, version).fragments:
            if found.name == fragment.fragment:
                return found
        raise BrokenInvariantError(
            f"version {version} of network {fragment.network} has no fragment {fragment.fragment}"
        )

    def elsewhere(self) -> dict[FragmentId, FragmentRecord]:
        """The fragments that other nodes run."""
        with self._lock:
            return {fragment: record for fragment, (_, record) in self._elsewhere.items()}

    def names(self, fragment: FragmentId) -> FragmentNames:
        """The names that belong to a fragment."""
        network, record = self._known(fragment)
        return FragmentNames(network.owner, record.network, record.fragment)

    def topic_ids(self, fragment: FragmentId) -> Mapping[TopicName, str]:
        """The ids of the topics that the fragment was deployed with."""
        return dict(self._known(fragment)[1].topic_ids)

    def choice(self, fragment: FragmentId) -> StateChoice | None:
        """What the user chose for the fragment's state; None: nothing."""
        return state_choice(self._known(fragment)[1])

    def begins(self, fragment: FragmentId) -> Mapping[StreamName, Begin]:
        """Where the fragment begins to read what it has never read, as deploys have decided."""
        return {
            stream: Begin(
                offsets={partition: begin for partition, begin, _ in ranges},
                until={partition: end for partition, _, end in ranges},
                skips=skips,
            )
            for stream, _, ranges, skips in self._known(fragment)[1].begins
        }

    def input_topics(self) -> frozenset[TopicName]:
        """The data topics that this node's fragments read."""
        return frozenset(stream.topic for f, _ in self._fragments() for stream in f.inputs)

    def derived_inputs(self) -> frozenset[DerivedInput]:
        """The derived streams that this node's fragments read."""
        return frozenset(
            lane_input
            for fragment, record in self._fragments()
            for lane_input in profile(fragment, dict(record.topic_ids)).inputs
            if isinstance(lane_input, DerivedInput)
        )

    def _fragments(self) -> list[tuple[Fragment, FragmentRecord]]:
        with self._lock:
            known = [(fragment, record) for fragment, (_, record) in self._records.items()]
        return [(self.fragment(fragment, record.version), record) for fragment, record in known]

    def _known(self, fragment: FragmentId) -> tuple[NetworkRecord, FragmentRecord]:
        with self._lock:
            found = self._records.get(fragment) or self._elsewhere.get(fragment)
        if found is None:
            raise BrokenInvariantError(f"fragment {fragment.fragment} is not known to this node")
        return found

    def _plan(self, fragment: FragmentId, version: NetworkVersion) -> Plan:
        key = (fragment.network, version)
        with self._lock:
            plan = self._planned.get(key)
        if plan is None:
            network, _ = self._known(fragment)
            record = self._version(fragment.network, version)
            if record is None:
                raise RetryError(f"version {version} of network {fragment.network} is gone")
            plan = self._planner(record, network.owner)
            with self._lock:
                self._planned[key] = plan
                while len(self._planned) > VERSIONS_KEPT:
                    del self._planned[next(iter(self._planned))]
        return plan
