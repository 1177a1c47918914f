"""Probes of access control lists and of deployed networks."""

from dataclasses import replace
from pathlib import Path

import pytest

from brokers.kafka.errors import NoAccessListsError
from brokers.kafka.rights import KafkaRights
from brokers.kafka.servers import KafkaServers
from brokers.records import TopicRule
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import NetworkRecord, NetworkVersionRecord
from pipeline.deploy.apply import compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.doctor.checks import exit_code, findings
from pipeline.doctor.facts import Observed, ObservedAccess, ObservedSecondaries, Verdict
from pipeline.doctor.probes import Probes
from pipeline.errors import ExitCode, MedusaError, NotAllowedError, UnavailableError
from pipeline.ids import (
    FragmentName,
    NetworkId,
    NetworkLife,
    NetworkName,
    NetworkVersion,
    ParticipantId,
    TopicName,
)
from pipeline.names import Znodes
from pipeline.settings import combine
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.catalog.support import NOTHING_READ, node
from tests.unit.deploy.twins import NOW, World, write_project

IN = TopicName("car-sightings")
RULE = TopicRule("out", False, "User:eve", "*", "WRITE", True)
Answer = tuple[TopicRule, ...] | MedusaError


class Rights(KafkaRights):
    """Returns the given rules."""

    def __init__(self, answer: Answer) -> None:
        self._told = answer

    def topic_rules(self) -> Answer:
        """The given rules."""
        return self._told


@pytest.mark.parametrize(
    ("answer", "words", "code"),
    [
        ((RULE,), "1 rule about topics", ExitCode.DONE),
        ((), "0 rules about topics", ExitCode.DONE),
        (NoAccessListsError("none"), "none: whoever reaches", ExitCode.DONE),
        (NotAllowedError("no"), "that takes Describe on Cluster", ExitCode.DONE),
        (UnavailableError("nobody answers"), "nobody answers", ExitCode.UNAVAILABLE),
    ],
)
def test_access_lists_in_one_line(answer: Answer, words: str, code: ExitCode) -> None:
    """Missing or unreadable lists are not wrong: a lane runs without them."""
    probes = Probes(combine(()), None)
    seen = probes.access(KafkaServers("a:1"), lambda *_: Rights(answer))
    (found,) = findings(Observed(tuple(probes.checks)))
    assert words in found.message
    assert exit_code((found,)) is code
    assert (found.verdict is Verdict.GOOD) is (code is ExitCode.DONE)
    reported = ObservedAccess(answer, "User:ANONYMOUS") if isinstance(answer, tuple) else None
    assert seen == reported


def test_a_deployed_network_is_read_with_its_topics_and_writers(tmp_path: Path) -> None:
    """A network that cannot be planned has the reason, one of another participant is skipped."""
    world = World.new()
    us = ParticipantId("local")
    document = read_document(write_project(tmp_path), lambda _: None)
    deploy(compare(document, us, world.servers), world.servers, lambda _: None)
    cars, moving = NetworkId(ParticipantId("local"), NetworkName("cars")), FragmentName("moving")
    epoch = world.catalog.owners.claim(cars, moving, node(), NOW).epoch
    status = replace(NOTHING_READ, network=cars, fragment=moving, epoch=epoch)
    world.catalog.statuses.report(status)
    for name, owner in (("damaged", us), ("theirs", ParticipantId("others"))):
        life, version = NetworkLife(name), NetworkVersion(1)
        network = NetworkRecord(NetworkId(owner, NetworkName(name)), version, life, (), ())
        record = NetworkVersionRecord(network.network, version, "format: 9", (), "", NOW, ())
        world.catalog.format.ensure(owner)
        world.catalog.networks.deploy(network, record, (), None)
    seen = {
        name: one for name, (one, _) in Probes(combine(()), None)._deployed(world.catalog).items()
    }
    assert [str(name) for name in seen] == ["cars", "damaged"]
    assert {"car-sightings", "moving-cars", "stopped-cars"} <= set(seen[cars].known)
    assert seen[cars].writers == {"moving-cars": status}
    without = ObservedSecondaries(has_state=False)
    assert seen[cars].secondaries == {"moving": without, "stopped": without}
    assert seen[NetworkId(ParticipantId("local"), NetworkName("damaged"))].trouble is not None


def test_a_catalog_that_is_not_there_yet_is_no_problem() -> None:
    """The first deploy or node makes it."""
    probes = Probes(combine(()), None)
    assert probes._deployed(Catalog(MemoryStore(MemoryTree()), Znodes(""))) == {}
    assert probes.checks == []
