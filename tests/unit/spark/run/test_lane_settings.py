from dataclasses import replace

import pytest

from pipeline.errors import RefusedError
from pipeline.ids import (
    Epoch,
    Incarnation,
    NetworkLife,
    NetworkVersion,
    RunNumber,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.lanes.output_succession import Succession
from pipeline.lanes.start.facts import StateChoice
from pipeline.markers.commit_marker import CommitMarker, Judged
from pipeline.markers.deploys import DeployId
from pipeline.markers.positions import InputPartition
from pipeline.planner.digest import fragment_digest
from pipeline.planner.state import OnChange
from pipeline.spark.run.lane_settings import LaneSettings
from tests.unit.lanes.marked import marked
from tests.unit.spark.run.test_rebuild import MARKER
from tests.unit.spark.support import fragment

ONE, TWO = Incarnation("one"), Incarnation("two")
FIRST = DeployId(NetworkLife("life"), NetworkVersion(1))
SECOND = replace(FIRST, version=NetworkVersion(2))
PLAN = fragment_digest(fragment("tolls"))
BEGUN = replace(MARKER, incarnation=TWO, chosen=True, plan=PLAN, decided=SECOND)


def settings(choice: OnChange | None) -> LaneSettings:
    """Of a lane with a choice for its first incarnation."""
    planned = fragment("tolls")
    return LaneSettings(
        lane=planned.names.stable.lane,
        run=RunNumber(1),
        fragment=planned,
        life=NetworkLife("life"),
        version=SECOND.version,
        epoch=Epoch(3),
        topic_ids={},
        kept=lambda: None,
        readers=None,
        ran_before=True,
        record_start=lambda: None,
        check_wanted=lambda: None,
        choice=None if choice is None else StateChoice(choice, ONE),
    )


@pytest.mark.parametrize("expected", [None, "", "life@1"])
@pytest.mark.parametrize("found", ["", "life@1", "life@2"])
def test_a_lane_that_began_too_late_is_noticed(expected: str | None, found: str) -> None:
    """The deploy has seen another marker; an earlier program has not recorded which."""
    lane, last = replace(settings(None), begun_anew=expected), replace(MARKER, anew=found)
    if expected in {None, found}:
        lane.check_begun(last)
    else:
        with pytest.raises(RefusedError, match="a lane of an earlier one has begun anew"):
            lane.check_begun(last)


def test_its_own_takeover_is_not_too_late() -> None:
    """Neither before it has begun anew, nor afterwards."""
    own = Succession(NetworkLife("life"), SECOND.version, TopicId("out"), (), ())
    lane = replace(settings(None), begun_anew="", succession=own)
    for anew in ("life@1", own.token):
        lane.check_begun(replace(MARKER, anew=anew))


@pytest.mark.parametrize("chosen", [OnChange.REBUILD, OnChange.EMPTY, None])
def test_a_choice_counts_for_its_incarnation(chosen: OnChange | None) -> None:
    """Later ones have begun according to it."""
    lane = settings(chosen)
    assert lane.on_change(MARKER) is chosen
    assert lane.on_change(None) is None
    assert lane.on_change(replace(MARKER, incarnation=TWO, decided=SECOND)) is None


@pytest.mark.parametrize("chosen", OnChange)
def test_an_incarnation_without_the_choice_does_not_end_it(chosen: OnChange) -> None:
    """One of an earlier version that began after the deploy: the choice is still due."""
    late = replace(MARKER, incarnation=TWO, decided=FIRST)
    assert settings(chosen).on_change(late) is chosen
    other = replace(late, decided=replace(FIRST, life=NetworkLife("another")))
    assert settings(chosen).on_change(other) is None


def test_a_lane_continues_in_the_redrive_topic_of_its_marker() -> None:
    """Also where the catalog was restored from an older state; its own entry takes precedence."""
    at = InputPartition(StreamName("cars"), TopicName("car-sightings"), 0)
    redrive = fragment("tolls").names.redrive
    lane = settings(None)
    assert lane.after(MARKER) == lane
    read = replace(MARKER, sources=marked({at: 1, replace(at, topic=redrive): 2}))
    assert lane.after(read).topic_ids == {redrive: f"id of {redrive}"}
    known = replace(lane, topic_ids={redrive: "another"})
    assert known.after(read) == known


def test_a_lane_that_starts_anew_does_not_continue_in_a_redrive_topic() -> None:
    """It may be deleted by now, and would be waited for."""
    at = InputPartition(StreamName("cars"), TopicName("car-sightings"), 0)
    redrive = fragment("tolls").names.redrive
    read = replace(MARKER, sources=marked({at: 1, replace(at, topic=redrive): 2}))
    found = Succession(NetworkLife("life"), SECOND.version, TopicId("out"), (), ())
    lane = replace(settings(None), succession=found)
    assert lane.begins_anew(read)
    assert lane.after(read) == lane
    begun = replace(read, anew=found.token)
    assert not lane.begins_anew(begun)
    assert redrive in lane.after(begun).topic_ids


RAN = replace(BEGUN, judged=Judged(1, 0, late=False, refused=0, failed=0))


@pytest.mark.parametrize(
    ("chosen", "marker", "counts"),
    [
        (OnChange.EMPTY, BEGUN, True),
        (OnChange.EMPTY, RAN, False),
        (OnChange.EMPTY, replace(BEGUN, plan="of another version"), False),
        (OnChange.REBUILD, BEGUN, False),
    ],
)
def test_deleted_records_are_skipped_up_to_the_first_batch(
    chosen: OnChange, marker: CommitMarker, *, counts: bool
) -> None:
    """Retention may remove more before it has run; a state is rebuilt once.

    What another version has begun after somebody chose is nothing that was chosen.
    """
    assert settings(chosen).on_change(marker) is (chosen if counts else None)
