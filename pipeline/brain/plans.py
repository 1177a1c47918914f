"""Plans of a node's fragments: catalog versions, planned again.

A version is immutable within a life of its network, so a plan is cached by network, life and
version, for as long as the catalog assigns a fragment of it. A version that cannot be read or
planned raises where it is asked for, and is left out of what covers all fragments: it fails alone.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from pipeline.boundaries.profile import DerivedInput, profile
from pipeline.brain.events import Desired
from pipeline.catalog.records import (
    DesiredState,
    FragmentRecord,
    NetworkRecord,
    NetworkVersionRecord,
)
from pipeline.errors import DocumentError, RefusedError, RetryError
from pipeline.ids import (
    NetworkLife,
    NetworkName,
    NetworkVersion,
    ParticipantId,
    StreamName,
    TopicName,
)
from pipeline.lanes.events import FragmentId
from pipeline.lanes.sources import Begin
from pipeline.lanes.start import StateChoice
from pipeline.lanes.succession import Succession
from pipeline.names import FragmentNames
from pipeline.planner.digest import fragment_digest, same_format
from pipeline.planner.plan import Fragment, Plan

Planner = Callable[[NetworkVersionRecord, ParticipantId], Plan]
_DEPLOY_AGAIN = "`medusa plan` shows the difference; deploy the network again with this version."
_Key = tuple[NetworkName, NetworkLife, NetworkVersion]


@dataclass(frozen=True, slots=True)
class Assigned:
    """A fragment that is deployed, as one reading of the catalog has it."""

    network: NetworkRecord
    record: FragmentRecord

    @property
    def fragment(self) -> FragmentId:
        """Which fragment."""
        return FragmentId(self.record.network, self.record.fragment)

    @property
    def names(self) -> FragmentNames:
        """The names that belong to it."""
        return FragmentNames(self.network.owner, self.record.network, self.record.fragment)

    @property
    def topic_ids(self) -> Mapping[TopicName, str]:
        """The ids of the topics that it was deployed with."""
        return dict(self.record.topic_ids)

    @property
    def choice(self) -> StateChoice | None:
        """What the user chose for its state; None: nothing."""
        return None if self.record.choice is None else StateChoice(*self.record.choice)

    @property
    def begins(self) -> Mapping[StreamName, Begin]:
        """Where it begins to read what it has never read, as deploys have decided."""
        return self.record.decided(self.network.life)

    @property
    def succession(self) -> Succession | None:
        """Which other fragments have written its output; None: none has."""
        found = self.record.succeeds
        return None if found is None else Succession(self.network.life, *found)

    @property
    def running(self) -> bool:
        """Whether it is to run."""
        return self.record.desired is DesiredState.RUNNING

    @property
    def desired(self) -> Desired:
        """What is wanted of it here."""
        record, life = self.record, self.network.life
        return Desired(
            fragment=self.fragment,
            life=life,
            version=record.version,
            digest=record.digest,
            running=self.running,
            choice=self.choice,
            topic_ids=record.topic_ids,
            begins=record.begins,
        )

    @property
    def place(self) -> str:
        """Names it in messages."""
        return f"fragment {self.record.network}.{self.record.fragment}"

    @property
    def key(self) -> _Key:
        """What its plan is cached by."""
        return self.network.network, self.network.life, self.record.version

    @property
    def newest_key(self) -> _Key:
        """What the plan of the wanted version of its network is cached by."""
        return self.network.network, self.network.life, self.network.version


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
        self._planning = threading.Lock()
        self._here: dict[FragmentId, Assigned] = {}
        self._elsewhere: dict[FragmentId, Assigned] = {}
        self._planned: dict[_Key, Plan] = {}

    def assign(self, here: Iterable[Assigned], elsewhere: Iterable[Assigned] = ()) -> None:
        """Replace the fragments that the catalog assigns to this node, and drop plans of others.

        Args:
            here: the fragments assigned to this node.
            elsewhere: those that other nodes run.
        """
        with self._lock:
            self._here = {one.fragment: one for one in here}
            self._elsewhere = {one.fragment: one for one in elsewhere}
            every = [one for known in (self._here, self._elsewhere) for one in known.values()]
            needed = {key for one in every for key in (one.key, one.newest_key)}
            self._planned = {key: plan for key, plan in self._planned.items() if key in needed}

    def assigned(self, fragment: FragmentId) -> Assigned:
        """A fragment that is assigned to this node.

        Raises:
            RetryError: it is not assigned to this node any more.
        """
        with self._lock:
            found = self._here.get(fragment)
        if found is None:
            raise RetryError(
                "it is not assigned to this node any more",
                place=f"fragment {fragment.network}.{fragment.fragment}",
            )
        return found

    def elsewhere(self) -> tuple[Assigned, ...]:
        """The fragments that other nodes run, by name."""
        with self._lock:
            return tuple(one for _, one in sorted(self._elsewhere.items()))

    def fragment(self, assigned: Assigned) -> Fragment:
        """The plan of a fragment, which is the one that was deployed.

        Raises:
            RefusedError: this version of Medusa does not plan it as it was deployed, or not at all.
            RetryError: the network was destroyed meanwhile.
            UnavailableError: the catalog does not answer.
        """
        return as_deployed(self._plan(assigned), assigned)

    def retention_ms(self, fragment: FragmentId) -> int:
        """For how long the topics of the fragment's network keep records, as it is wanted now."""
        assigned = self.assigned(fragment)
        newest = replace(assigned.record, version=assigned.network.version)
        return self._plan(replace(assigned, record=newest)).retention_ms

    def input_topics(self) -> frozenset[TopicName]:
        """The data topics that this node's planned fragments read."""
        return frozenset(stream.topic for f, _ in self._fragments() for stream in f.inputs)

    def derived_inputs(self) -> frozenset[DerivedInput]:
        """The derived streams that this node's fragments read."""
        return frozenset(
            lane_input
            for fragment, one in self._fragments()
            for lane_input in profile(fragment, one.topic_ids).inputs
            if isinstance(lane_input, DerivedInput)
        )

    def _fragments(self) -> list[tuple[Fragment, Assigned]]:
        """The fragments of this node that are planned: a lane's plan is made when it starts."""
        with self._lock:
            known = [(self._planned.get(one.key), one) for one in self._here.values()]
        return [
            (fragment, one)
            for plan, one in known
            if plan is not None
            for fragment in plan.fragments
            if fragment.name == one.record.fragment
        ]

    def _plan(self, assigned: Assigned) -> Plan:
        with self._planning:
            with self._lock:
                plan = self._planned.get(assigned.key)
            if plan is None:
                plan = self._plan_again(assigned)
                with self._lock:
                    self._planned[assigned.key] = plan
        return plan

    def _plan_again(self, assigned: Assigned) -> Plan:
        network, version = assigned.network, assigned.record.version
        record = self._version(network.network, version)
        if record is None:
            raise RetryError(f"version {version} of the network is gone", place=assigned.place)
        try:
            return self._planner(record, network.owner)
        except DocumentError as error:
            first = error.problems[0].message if error.problems else error.message
            raise RefusedError(
                f"this version of Medusa cannot plan version {version} of the network: {first}",
                place=assigned.place,
                hint=_DEPLOY_AGAIN,
            ) from error


def as_deployed(plan: Plan, assigned: Assigned) -> Fragment:
    """The fragment of a plan, if that is the plan which its record names by a digest.

    Digests of two formats cannot be compared: such a fragment starts, and builds its state from
    the log.

    Raises:
        RefusedError: it is another plan, or has no such fragment.
    """
    record = assigned.record
    found = next((one for one in plan.fragments if one.name == record.fragment), None)
    problem = ""
    if found is None:
        problem = "has no such fragment"
    else:
        digest = fragment_digest(found)
        if same_format(digest, record.digest) and digest != record.digest:
            problem = f"differs from what was deployed (digest {digest}, deployed {record.digest})"
    if found is None or problem:
        raise RefusedError(
            f"the plan that this version of Medusa makes of version {record.version} of the "
            f"network {problem}",
            place=assigned.place,
            hint=_DEPLOY_AGAIN,
        )
    return found
