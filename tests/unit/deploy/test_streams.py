from pathlib import Path

import pytest

from pipeline.deploy.documents import read_document
from pipeline.deploy.streams import choices, find
from pipeline.errors import RefusedError
from pipeline.ids import ParticipantId
from pipeline.planner import planner
from pipeline.planner.plan import Plan
from tests.unit.deploy.twins import DOCUMENT, write_project

INSIDE = """\
network: fused
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
boxes:
  fast: {filter: sightings, where: speed > 50}
  names: {map: fast, select: {car: car}}
outputs:
  names: {topic: fast-cars}
"""


def _plan(folder: Path, text: str) -> Plan:
    document = read_document(write_project(folder, text), lambda _: None)
    return planner.plan(document.network, ParticipantId("us"))


def test_a_stream_is_found_by_every_name(tmp_path: Path) -> None:
    """By stream, by network.stream and by topic; inputs as well as outputs."""
    plans = [_plan(tmp_path, DOCUMENT)]
    for name in ("moving", "cars.moving", "moving-cars"):
        found = find(name, plans)
        assert found is not None
        assert (found.topic, found.external) == ("moving-cars", False)
    found = find("sightings", plans)
    assert found is not None
    assert (found.topic, found.external) == ("car-sightings", True)
    assert find("nothing", plans) is None


def test_a_box_inside_a_fragment_is_an_error_of_its_own(tmp_path: Path) -> None:
    """It has no topic; the message names its fragment and the streams that have one."""
    plans = [_plan(tmp_path, INSIDE)]
    with pytest.raises(RefusedError, match="computed inside fragment names") as caught:
        find("fast", plans)
    assert "sightings, names" in caught.value.hint


def test_the_same_name_in_two_networks_is_ambiguous(tmp_path: Path) -> None:
    """Unless both have the same topic, the full name is required."""
    other = DOCUMENT.replace("network: cars", "network: lorries").replace("-cars", "-lorries")
    plans = [_plan(tmp_path / "a", DOCUMENT), _plan(tmp_path / "b", other)]
    with pytest.raises(RefusedError) as caught:
        find("moving", plans)
    assert "cars.moving, lorries.moving" in caught.value.hint
    same = find("sightings", plans)
    assert same is not None
    assert same.topic == "car-sightings"


def test_choices_begin_with_the_most_similar(tmp_path: Path) -> None:
    """So that the probable intention of a typing error comes first."""
    assert choices([_plan(tmp_path, DOCUMENT)], "stoped")[0] == "stopped"
