"""Lane settings: a fragment of one version of its network, under one epoch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pipeline.errors import RefusedError
from pipeline.ids import (
    Epoch,
    LaneId,
    NetworkLife,
    NetworkVersion,
    RunNumber,
    StreamName,
    TopicName,
)
from pipeline.lanes.output_succession import Succession, began_late
from pipeline.lanes.source_ids import Begin
from pipeline.lanes.start.facts import StateChoice
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.deploys import DeployId
from pipeline.names import LaneNames
from pipeline.planner.digest import fragment_digest
from pipeline.planner.plan import Fragment, Kept
from pipeline.planner.state import OnChange
from pipeline.trimming.readers import ReadersInCatalog


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """Settings of a lane, constant for its run.

    Args:
        lane: its id.
        run: the number of this start.
        fragment: the plan of its fragment.
        life: of its network.
        version: of its network.
        epoch: the ownership under which it starts.
        topic_ids: ids of its topics at deploy, and of its redrive topic.
        kept: returns what it removes of the topics that it writes; None: not read yet.
        readers: who reads its output, by the catalog; None: a follower, which removes nothing.
        ran_before: whether a first marker was committed, by the catalog.
        record_start: records that in the catalog.
        check_wanted: compares the catalog with these settings; raises if they have changed.
        choice: the user's choice for a state that does not fit.
        begins: begins of sources that it has never read.
        succession: takeover of its output from other fragments; None: there was none at its deploy.
        begun_anew: the takeover that the last marker named at its deploy; None: not recorded.
        amnesia: whether it begins with an empty state rather than build it from the log.
    """

    lane: LaneId
    run: RunNumber
    fragment: Fragment
    life: NetworkLife
    version: NetworkVersion
    epoch: Epoch
    topic_ids: Mapping[TopicName, str]
    kept: Callable[[], Kept | None]
    readers: ReadersInCatalog | None
    ran_before: bool
    record_start: Callable[[], None]
    check_wanted: Callable[[], None]
    choice: StateChoice | None = None
    begins: Mapping[StreamName, Begin] = field(default_factory=dict)
    succession: Succession | None = None
    begun_anew: str | None = None
    amnesia: bool = False

    @property
    def place(self) -> str:
        """Names the fragment, for errors."""
        return f"fragment {self.lane.fragment}"

    @property
    def names(self) -> LaneNames:
        """The names of the lane."""
        return LaneNames(self.lane)

    @property
    def deploy(self) -> DeployId:
        """The deploy of its version."""
        return DeployId(self.life, self.version)

    def on_change(self, marker: CommitMarker | None) -> OnChange | None:
        """The user's choice for the state, while it is valid.

        It is valid until the lane has begun anew in this version: a lane of an earlier version that
        began after the choice has not received it. EMPTY is valid up to the first batch of this
        plan: its inputs may lose more records before that.
        """
        if self.choice is None or marker is None:
            return None
        chosen = self.choice.on_change
        if self.choice.incarnation == marker.incarnation or self.deploy.is_after(marker.decided):
            return chosen
        own = marker.plan == fragment_digest(self.fragment)
        begun = own and marker.chosen and marker.judged is None
        return chosen if begun and chosen is OnChange.EMPTY else None

    def begins_anew(self, last: CommitMarker | None) -> bool:
        """Whether it takes over its output from others after its last marker; None: it has none."""
        succession = self.succession
        return succession is not None and succession.is_due(last, ran_before=self.ran_before)

    def check_begun(self, last: CommitMarker) -> None:
        """Check that no lane of an earlier version has begun anew since the deploy of this one.

        Such a lane was about to take over another output, which this version does not write. Its
        marker has replaced the one by which the deploy decided that the fragment continues.

        Raises:
            RefusedError: one has.
        """
        if self.begins_anew(last):
            return
        if began_late(last, self.begun_anew, self.succession):
            raise RefusedError(
                "after this version was deployed, a lane of an earlier one has begun anew, for an "
                "output that this version does not write: where the fragment was in its own output "
                "is not in its markers any more",
                place=self.place,
                hint="deploy it again: `medusa plan` says what has to be decided",
            )

    def after(self, last: CommitMarker) -> "LaneSettings":
        """The settings with the redrive topic of a marker that the lane continues from.

        The catalog may lack the redrive topic if it was restored from an older state. A lane that
        begins anew does not continue it: the topic may be deleted by now.
        """
        if last.redrive is None or last.redrive[0] in self.topic_ids or self.begins_anew(last):
            return self
        name, topic_id = last.redrive
        return replace(self, topic_ids={**self.topic_ids, name: topic_id})

    @property
    def output_id(self) -> str:
        """Kafka's id of the output topic."""
        return self.topic_ids.get(self.fragment.output.topic, "")
