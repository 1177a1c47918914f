"""A placement of a box inside of a running fragment with state, and the same undone."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.ids import BatchId, Epoch, FragmentName, Incarnation, Offset, StreamName, TopicName
from pipeline.lanes.source_ids import first_sources, planned_sources
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.codec import encode_marker
from pipeline.markers.commit_marker import Totals
from pipeline.markers.positions import InputPartition
from pipeline.planner.arrows import ARROW_US
from pipeline.planner.changes import Action, Changes, Item
from pipeline.planner.digest import state_digest
from pipeline.planner.inputs import InputFrom
from pipeline.planner.render import changes_as_data, render_changes
from pipeline.planner.state import Choices, Fate, OnChange
from tests.unit.deploy.test_inputs import NET, Scene
from tests.unit.deploy.twins import NOW

ELSEWHERE = ", placement: {nodes: zone=b}"
CARS, COUNTED = "car-sightings", "us.cars.counts"
NOT_TAKEN = "the state that fragment {} has of box counts is not taken over"


def chain(before: str = "", state: str = "", behind: str = "") -> str:
    """Boxes of one fragment, `moving`, each with what is placed."""
    return f"""\
network: cars
streams:
  sightings: {{topic: {CARS}, schema: sighting.avsc, event_time: seen_at}}
boxes:
  fast: {{filter: sightings, where: speed > 0{before}}}
  counts: {{aggregate: fast, window: 10s, by: [car], compute: {{n: count(*)}}{state}}}
  moving: {{filter: counts, where: n > 1{behind}}}
"""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """The fragment runs with a state, and has read half of its topic."""
    scene = Scene(tmp_path)
    scene.world.kafka.add(CARS, 1, records=20)
    scene.deploy(chain())
    scene.read(chain(), {CARS: 10})
    return scene


def item(found: Changes, name: str) -> Item:
    """What happens to a fragment."""
    return next(one for one in found.fragments if one.name == name)


def has_run(scene: Scene, document: str) -> None:
    """The fragment `counts` has run as a document says, and read everything."""
    plan, name = scene.compare(document).plan, FragmentName("counts")
    fragment = next(one for one in plan.fragments if one.name == name)
    record = scene.world.catalog.fragments.get(NET, name)
    assert record is not None
    sources = first_sources(planned_sources(fragment, dict(record.topic_ids)))
    request = StartRequest(
        Epoch(1), state_digest(fragment), stateful=True, on_change=None, place="", sources=sources
    )
    at = {InputPartition(StreamName("sightings"), TopicName(CARS), 0): Offset(20)}
    marker = first_marker(request, Incarnation("1-8"), at, NOW)
    marker = replace(marker, batch=BatchId(2), totals=Totals(records_in=20))
    scene.world.write(fragment.names.markers, encode_marker(marker))


def test_a_box_behind_the_state_runs_elsewhere_and_comes_back(scene: Scene) -> None:
    """Each plan shows the arrow with its cost, and that the other fragment's state is not taken."""
    cut = chain(behind=ELSEWHERE)
    found = scene.compare(cut).changes
    made = item(found, "counts")
    assert made.action is Action.CREATE
    assert made.reasons[-1] == (
        f"{NOT_TAKEN.format('moving')}: it is computed again, from the start of sightings "
        "(`earliest`)"
    )
    assert "`--input counts=beginning`" in item(found, "moving").hint
    (arrow,) = found.arrows
    assert (arrow.writer, arrow.reader, arrow.topic, arrow.is_new) == (
        "counts",
        "moving",
        COUNTED,
        True,
    )
    text = render_changes(found)
    assert "arrows (1 create)\n  + counts → moving  topic us.cars.counts: about 5 µs of" in text
    scene.deploy(cut, counts=InputFrom.BEGINNING, sightings=InputFrom.END)

    scene.read(cut, {COUNTED: 0})
    has_run(scene, cut)
    found = scene.compare(chain()).changes
    back = item(found, "moving")
    assert back.fate is Fate.UNDECIDED
    assert NOT_TAKEN.format("counts") in back.reasons
    assert "`--state moving=rebuild`" in back.hint
    assert item(found, "counts").action is Action.REMOVE
    assert [one.is_new for one in found.arrows] == [False]
    assert "arrows (1 remove)\n  - counts → moving  topic us.cars.counts: about" in (
        render_changes(found)
    )
    choices = Choices(OnChange.REBUILD, inputs={StreamName("counts"): InputFrom.END})
    found = scene.compare(chain(), choices).changes
    assert (found.problems, item(found, "moving").fate) == ((), Fate.REBUILD)


def test_a_box_before_the_state_makes_that_of_another_topic(scene: Scene) -> None:
    """It does not fit, although the boxes are the same: the refusal says so."""
    found = scene.compare(chain(before=ELSEWHERE)).changes
    moving = item(found, "moving")
    assert moving.fate is Fate.UNDECIDED
    assert "new: topic of fast `us.cars.fast`" in moving.details
    assert [(one.writer, one.reader) for one in found.arrows] == [("fast", "moving")]
    assert "not taken over" not in "".join(item(found, "fast").reasons)
    choices = {StreamName("fast"): InputFrom.BEGINNING, StreamName("sightings"): InputFrom.END}
    found = scene.compare(
        chain(before=ELSEWHERE), Choices(OnChange.REBUILD, inputs=choices)
    ).changes
    assert (found.problems, item(found, "moving").fate) == ((), Fate.REBUILD)


def test_the_box_with_the_state_alone_runs_elsewhere(scene: Scene) -> None:
    """Two arrows; programs get them as data."""
    found = scene.compare(chain(state=ELSEWHERE)).changes
    assert item(found, "counts").reasons[-1].endswith("from the start of fast (all of it)")
    assert changes_as_data(found)["arrows"] == [
        {"from": a, "to": b, "topic": f"us.cars.{a}", "action": "create", "cost_us": ARROW_US}
        for a, b in (("fast", "counts"), ("counts", "moving"))
    ]


def test_a_first_deploy_lists_no_arrows(tmp_path: Path) -> None:
    """There is nothing to compare them with; `explain` shows who reads what."""
    scene = Scene(tmp_path)
    found = scene.compare(chain(behind=ELSEWHERE)).changes
    assert found.arrows == ()
    assert "arrows" not in render_changes(found)
