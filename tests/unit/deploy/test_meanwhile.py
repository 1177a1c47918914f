"""Concurrent changes between the plan of a deploy and its last step, as while a user confirms."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.clock import Deadline
from pipeline.deploy.apply import compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.deploy.pause import pause, resume
from pipeline.deploy.remove import destroy, doomed, stop
from pipeline.errors import RetryError
from pipeline.ids import NetworkId, NetworkName, ParticipantId, TopicName
from tests.unit.deploy.twins import DOCUMENT, World, write_project

US = ParticipantId("us")
CARS = NetworkId(US, NetworkName("cars"))


@pytest.mark.parametrize(
    ("before", "meanwhile"),
    [
        (lambda _: None, lambda world: pause(CARS, None, world.catalog)),
        (lambda world: pause(CARS, None, world.catalog), lambda w: resume(CARS, None, w.catalog)),
        (lambda _: None, lambda world: stop(CARS, world.catalog)),
    ],
    ids=["pause", "resume", "undeploy"],
)
def test_a_concurrent_change_of_desired_state_is_kept(
    tmp_path: Path, before: Callable[[World], object], meanwhile: Callable[[World], object]
) -> None:
    """The deploy fails with a retryable error; the next one succeeds."""
    world = World.new()
    reported: list[str] = []

    def planned(text: str) -> Callable[[], object]:
        document = read_document(write_project(tmp_path, text), lambda _: None)
        found = compare(document, US, world.servers)
        return lambda: deploy(found, world.servers, reported.append)

    planned(DOCUMENT)()
    before(world)
    changed = DOCUMENT.replace("speed > 0", "speed > 5")
    last_step = planned(changed)
    meanwhile(world)
    after = world.catalog.fragments.of(CARS)
    with pytest.raises(RetryError, match="when the plan was made"):
        last_step()
    assert world.catalog.fragments.of(CARS) == after
    planned(changed)()
    assert world.catalog.fragments.of(CARS) != after


def test_a_deploy_that_was_planned_in_an_earlier_life_changes_nothing(tmp_path: Path) -> None:
    """The network was destroyed and deployed again since, and has the same version."""
    world = World.new()

    def planned(text: str) -> Callable[[], object]:
        document = read_document(write_project(tmp_path, text), lambda _: None)
        found = compare(document, US, world.servers)
        return lambda: deploy(found, world.servers, lambda _: None)

    planned(DOCUMENT)()
    last_step = planned(DOCUMENT.replace("speed > 0", "speed > 5"))
    what, deadline = doomed(CARS, world.servers), Deadline.after(world.clock, 5, "destroying")
    destroy(what, world.servers, deadline, lambda _: None)
    planned(DOCUMENT)()
    before = world.catalog.networks.get(CARS), world.catalog.fragments.of(CARS)
    with pytest.raises(RetryError, match="again since"):
        last_step()
    assert (world.catalog.networks.get(CARS), world.catalog.fragments.of(CARS)) == before


def test_a_deploy_removes_only_its_own_intent_record(tmp_path: Path) -> None:
    """Topics of a concurrent deploy that failed are identified as the network's by the next one."""
    world, other = World.new(), TopicName("us.cars.other.markers")

    def start_another(step: str) -> None:
        if step.startswith("creating"):
            world.catalog.deploys.begin(CARS, (other, TopicName("us.cars.moving.markers")))

    document = read_document(write_project(tmp_path, DOCUMENT), lambda _: None)
    deploy(compare(document, US, world.servers), world.servers, start_another)
    assert world.catalog.deploys.begun(CARS) == (other,)
    world.kafka.add(other)
    again = deploy(compare(document, US, world.servers), world.servers, lambda _: None)
    assert other in again.created
    assert world.catalog.deploys.begun(CARS) == ()
