"""Which lane is run: a fragment as one version of its network has it, under one ownership."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pipeline.ids import (
    Epoch,
    LaneId,
    NetworkLife,
    NetworkVersion,
    RunNumber,
    StreamName,
    TopicName,
)
from pipeline.lanes.output_succession import Succession
from pipeline.lanes.sources import Begin
from pipeline.lanes.start.facts import StateChoice
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.deploys import DeployId
from pipeline.names import LaneNames
from pipeline.planner.digest import fragment_digest
from pipeline.planner.plan import Fragment
from pipeline.planner.state import OnChange


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """Everything that a lane is told when it is made.

    Args:
        lane: which one.
        run: the number of this start.
        fragment: the plan of its fragment.
        life: of its network.
        version: of its network.
        epoch: the ownership under which it starts.
        topic_ids: the ids that its topics had when it was deployed, and that of its redrive topic.
        letters_kept_ms: returns for how long dead letters are kept that no rebuild needs; None:
            that is not known yet.
        ran_before: whether the catalog says that a first marker was committed.
        record_start: records that in the catalog.
        check_wanted: compares the catalog with what is to start; raises if that has changed.
        choice: what becomes of a state that does not fit.
        begins: where it begins to read what it has never read.
        succession: which other fragments have written its output; None: none has, at its deploy.
    """

    lane: LaneId
    run: RunNumber
    fragment: Fragment
    life: NetworkLife
    version: NetworkVersion
    epoch: Epoch
    topic_ids: Mapping[TopicName, str]
    letters_kept_ms: Callable[[], int | None]
    ran_before: bool
    record_start: Callable[[], None]
    check_wanted: Callable[[], None]
    choice: StateChoice | None = None
    begins: Mapping[StreamName, Begin] = field(default_factory=dict)
    succession: Succession | None = None

    @property
    def place(self) -> str:
        """Names the fragment, for errors."""
        return f"fragment {self.lane.fragment}"

    @property
    def names(self) -> LaneNames:
        """The names that belong to the lane."""
        return LaneNames(self.lane)

    @property
    def deploy(self) -> DeployId:
        """The deploy whose version it is."""
        return DeployId(self.life, self.version)

    def on_change(self, marker: CommitMarker | None) -> OnChange | None:
        """What was chosen for the state, as long as the choice counts.

        That is until the lane has begun anew, in this version: a lane of an earlier one that began
        after the choice has not heard of it. To pass over what is gone counts up to the first batch
        of this plan: its inputs may lose more before that.
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
        """Whether others have written its output since its last marker; None: it has none."""
        succession = self.succession
        return succession is not None and succession.is_due(last, ran_before=self.ran_before)

    def after(self, last: CommitMarker) -> "LaneSettings":
        """The same of a lane that goes on from a marker: what that has read, it reads.

        The catalog may not know of a redrive topic, since it was restored from an older state. One
        that begins anew does not go on there: the topic may be gone by now.
        """
        if last.redrive is None or last.redrive[0] in self.topic_ids or self.begins_anew(last):
            return self
        name, topic_id = last.redrive
        return replace(self, topic_ids={**self.topic_ids, name: topic_id})

    @property
    def output_id(self) -> str:
        """Kafka's id of the output topic."""
        return self.topic_ids.get(self.fragment.output.topic, "")
