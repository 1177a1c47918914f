"""What others do between the plan of a deploy and its last step: while it asks, above all."""

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
def test_what_somebody_wants_of_fragments_meanwhile_is_not_undone(
    tmp_path: Path, before: Callable[[World], object], meanwhile: Callable[[World], object]
) -> None:
    """Whoever deploys hears of it, and may deploy again."""
    world = World.new()
    told: list[str] = []

    def planned(text: str) -> Callable[[], object]:
        document = read_document(write_project(tmp_path, text), lambda _: None)
        found = compare(document, US, world.servers)
        return lambda: deploy(found, world.servers, told.append)

    planned(DOCUMENT)()
    before(world)
    changed = DOCUMENT.replace("speed > 0", "speed > 5")
    last_step = planned(changed)
    meanwhile(world)
    wanted = world.catalog.fragments.of(CARS)
    with pytest.raises(RetryError, match="when the plan was made"):
        last_step()
    assert world.catalog.fragments.of(CARS) == wanted
    planned(changed)()
    assert world.catalog.fragments.of(CARS) != wanted


def test_a_deploy_that_was_planned_in_an_earlier_life_changes_nothing(tmp_path: Path) -> None:
    """The network was destroyed and deployed again meanwhile, and is at the same version."""
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


def test_a_deploy_ends_its_own_and_not_one_that_began_beside_it(tmp_path: Path) -> None:
    """The other one loses, and what it has created is known as ours by the next."""
    world, other = World.new(), TopicName("us.cars.other.markers")

    def beside(told: str) -> None:
        if told.startswith("creating"):
            world.catalog.deploys.begin(CARS, (other, TopicName("us.cars.moving.markers")))

    document = read_document(write_project(tmp_path, DOCUMENT), lambda _: None)
    deploy(compare(document, US, world.servers), world.servers, beside)
    assert world.catalog.deploys.begun(CARS) == (other,)
    world.kafka.add(other)
    again = deploy(compare(document, US, world.servers), world.servers, lambda _: None)
    assert other in again.created
    assert world.catalog.deploys.begun(CARS) == ()
