from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.catalog.records import DesiredState, NetworkVersionRecord
from pipeline.deploy.apply import Comparison, Deployed, compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.deploy.pause import pause, resume
from pipeline.deploy.remove import stop
from pipeline.deploy.versions import document_of, history
from pipeline.errors import DeployError, RefusedError, RetryError, UnavailableError
from pipeline.ids import (
    BatchId,
    Epoch,
    FragmentName,
    Incarnation,
    NetworkId,
    NetworkName,
    NetworkVersion,
    ParticipantId,
    TopicName,
)
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.codec import encode_marker
from pipeline.planner.digest import state_digest
from pipeline.planner.state import NO_CHOICES, Choices, OnChange
from schemas.registry.names import SubjectName
from tests.unit.deploy.twins import DOCUMENT, NOW, SCHEMA, World, write_project

US = ParticipantId("us")
CARS = NetworkId(US, NetworkName("cars"))


LIFE = Incarnation("1-7")
WINDOWS = """\
network: cars
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
boxes:
  counts: {aggregate: sightings, window: 10s, by: [car], compute: {n: count(*)}}
"""


def _has_run(world: World, folder: Path, document: str) -> None:
    """Write a commit marker of the only fragment, and records to its input."""
    (fragment,) = _compare(world, folder, document).plan.fragments
    wanted = StartRequest(Epoch(1), state_digest(fragment), stateful=True, on_change=None, place="")
    marker = replace(first_marker(wanted, LIFE, {}, NOW), batch=BatchId(4))
    world.write(fragment.names.markers, encode_marker(marker))
    world.kafka.fill("car-sightings")


def _compare(
    world: World, folder: Path, document: str = DOCUMENT, choices: Choices = NO_CHOICES
) -> Comparison:
    path = write_project(folder, document)

    def read_subject(subject: str) -> str | None:
        found = world.registry.latest(subject)
        return found.text if found else None

    return compare(read_document(path, read_subject), US, world.servers, choices)


def _deploy(world: World, folder: Path, document: str = DOCUMENT) -> Deployed:
    return deploy(_compare(world, folder, document), world.servers, lambda _: None)


def test_a_first_deploy_creates_everything_and_then_writes_the_catalog(tmp_path: Path) -> None:
    """Schemas, topics and catalog records exist afterwards, with the topics' ids."""
    world = World.new()
    done = _deploy(world, tmp_path)
    assert done.name == "cars@1"
    assert done.changed
    assert set(done.created) == set(world.kafka.topics)
    assert {"car-sightings-value", "moving-cars-value"} <= set(world.registry.subjects())
    network = world.catalog.networks.get(CARS)
    assert network is not None
    assert TopicName("car-sightings") not in network.made_topics
    assert TopicName("moving-cars") in network.made_topics
    for record in world.catalog.fragments.of(CARS):
        assert record.desired is DesiredState.RUNNING
        for topic, topic_id in record.topic_ids:
            assert world.kafka.topics[topic].topic_id == topic_id


def test_the_input_schema_is_registered_as_the_user_wrote_it(tmp_path: Path) -> None:
    """Producers that use the registry find the schema of the document."""
    world = World.new()
    _deploy(world, tmp_path)
    found = world.registry.latest("car-sightings-value")
    assert found is not None
    assert world.registry.lookup("car-sightings-value", SCHEMA) == found.id


def test_an_unchanged_deploy_changes_nothing(tmp_path: Path) -> None:
    """The second deploy leaves every stored byte as it was."""
    world = World.new()
    _deploy(world, tmp_path)
    revision = world.catalog.networks.revision(US)
    again = _deploy(world, tmp_path)
    assert (again.changed, again.name, again.created, again.registered) == (False, "cars@1", (), ())
    assert world.catalog.networks.revision(US) == revision
    assert not _compare(world, tmp_path).changes.pending


def test_a_deploy_that_failed_between_topics_can_be_run_again(tmp_path: Path) -> None:
    """Topics that the first attempt created count as created, so that destroy removes them."""
    world = World.new()
    world.kafka.fail_after = 5
    with pytest.raises(UnavailableError):
        _deploy(world, tmp_path)
    assert world.catalog.networks.get(CARS) is None
    assert len(world.kafka.topics) == 5
    world.kafka.fail_after = None
    done = _deploy(world, tmp_path)
    assert done.changed
    assert {*done.created, "car-sightings"} == set(world.kafka.topics)
    assert len(world.catalog.fragments.of(CARS)) == 2
    network = world.catalog.networks.get(CARS)
    assert network is not None
    assert set(network.made_topics) == set(world.kafka.topics) - {"car-sightings"}
    assert world.catalog.deploys.begun(CARS) == ()


def test_an_output_topic_of_others_is_reported_once(tmp_path: Path) -> None:
    """It is used unchanged, and destroy keeps it; the next deploy does not report it again."""
    world, reported = World.new(), list[str]()
    world.kafka.add("moving-cars", partitions=2)
    deploy(_compare(world, tmp_path), world.servers, reported.append)
    assert "topic moving-cars was there before" in reported[-1]
    reported.clear()
    deploy(_compare(world, tmp_path), world.servers, reported.append)
    assert reported == []


def test_a_topic_with_records_is_not_attributed_to_an_interrupted_deploy(tmp_path: Path) -> None:
    """No fragment can have written to it, so destroy keeps it."""
    world = World.new()
    world.kafka.fail_after = 5
    with pytest.raises(UnavailableError):
        _deploy(world, tmp_path)
    world.kafka.fail_after = None
    world.kafka.add("moving-cars", records=3)
    _deploy(world, tmp_path)
    network = world.catalog.networks.get(CARS)
    assert network is not None
    assert "moving-cars" not in network.made_topics


def test_one_changed_fragment_does_not_change_the_other(tmp_path: Path) -> None:
    """Only the fragment whose plan changed gets the new version."""
    world = World.new()
    _deploy(world, tmp_path)
    done = _deploy(world, tmp_path, DOCUMENT.replace("speed > 0", "speed > 5"))
    assert done.name == "cars@2"
    versions = {r.fragment: r.version for r in world.catalog.fragments.of(CARS)}
    assert versions == {"moving": 2, "stopped": 1}


def test_a_changed_fragment_without_state_continues(tmp_path: Path) -> None:
    """It gets the new plan under its old name; an unchanged fragment keeps its version."""
    world = World.new()
    _deploy(world, tmp_path)
    world.kafka.fill("us.cars.moving.markers")
    done = _deploy(world, tmp_path, DOCUMENT.replace("speed > 0", "speed > 5"))
    assert {f.fragment: f.version for f in done.fragments} == {"moving": 2, "stopped": 1}
    assert {f.choice for f in done.fragments} == {None}


def test_a_state_that_does_not_fit_needs_a_choice_which_travels(tmp_path: Path) -> None:
    """Refused with words; then the lane is told what was chosen, for its present life only."""
    world = World.new()
    before = _deploy(world, tmp_path, WINDOWS)
    _has_run(world, tmp_path, WINDOWS)
    changed = WINDOWS.replace("10s", "5s")
    with pytest.raises(DeployError) as caught:
        _deploy(world, tmp_path, changed)
    assert [p.box for p in caught.value.problems] == ["counts"]
    assert caught.value.problems[0].file.endswith("network.yaml")
    changes, _, since, _ = caught.value.problems[0].details
    assert "window" in changes
    assert "car-sightings holds records since 2023" in since
    assert world.catalog.fragments.of(CARS) == before.fragments
    found = _compare(world, tmp_path, changed, Choices(OnChange.REBUILD))
    done = deploy(found, world.servers, lambda _: None)
    (record,) = world.catalog.fragments.of(CARS)
    assert (record.version, record.choice) == (2, (OnChange.REBUILD, LIFE))
    again = _deploy(world, tmp_path, changed)
    assert (again.changed, again.fragments) == (False, done.fragments)


def test_a_named_choice_is_a_change_of_an_unchanged_network(tmp_path: Path) -> None:
    """So a lane that refused to rebuild restarts, with an empty state."""
    world = World.new()
    first = _deploy(world, tmp_path, WINDOWS)
    _has_run(world, tmp_path, WINDOWS)
    choices = Choices(named={FragmentName("counts"): OnChange.EMPTY})
    found = _compare(world, tmp_path, WINDOWS, choices)
    done = deploy(found, world.servers, lambda _: None)
    assert (done.changed, done.version) == (True, 2)
    assert done.fragments[0].choice == (OnChange.EMPTY, LIFE)
    assert (first.fragments[0].version, done.fragments[0].version) == (1, 2)


def test_paused_fragments_stay_paused_after_a_deploy(tmp_path: Path) -> None:
    """The plan changes nevertheless; undeploying ends the pause."""
    world = World.new()
    _deploy(world, tmp_path)
    assert pause(CARS, FragmentName("moving"), world.catalog) == ("moving",)
    assert pause(CARS, None, world.catalog) == ("stopped",)
    assert resume(CARS, FragmentName("stopped"), world.catalog) == ("stopped",)
    done = _deploy(world, tmp_path, DOCUMENT.replace("speed > 0", "speed > 5"))
    assert [(f.fragment, f.desired.value, f.version) for f in done.fragments] == [
        ("moving", "paused", 2),
        ("stopped", "running", 1),
    ]
    assert resume(CARS, None, world.catalog) == ("moving",)
    assert resume(CARS, None, world.catalog) == ()
    pause(CARS, None, world.catalog)
    assert stop(CARS, world.catalog)
    with pytest.raises(RefusedError, match="stopped"):
        resume(CARS, None, world.catalog)
    with pytest.raises(RefusedError, match="no fragment nobody"):
        pause(CARS, FragmentName("nobody"), world.catalog)


def test_history_and_the_document_of_an_earlier_version(tmp_path: Path) -> None:
    """The newest first, described; an earlier document is deployed again as a new version."""
    world = World.new()
    _deploy(world, tmp_path)
    _deploy(world, tmp_path, DOCUMENT.replace("speed > 0", "speed > 5"))
    record = world.catalog.networks.get(CARS)
    assert record is not None
    document = document_of(record, NetworkVersion(1), world.catalog)
    done = deploy(compare(document, US, world.servers), world.servers, lambda _: None)
    assert done.version == 3
    now = world.catalog.networks.get(CARS)
    assert now is not None
    found = history(now, world.catalog, 2)
    assert [(v.record.version, v.changed, v.deployed) for v in found] == [
        (3, "changed moving", True),
        (2, "changed moving", False),
    ]
    assert history(now, world.catalog, 9)[-1].changed == "the first version"
    assert found[0].record.digest == history(now, world.catalog, 9)[-1].record.digest
    with pytest.raises(RefusedError, match="no version 9"):
        document_of(now, NetworkVersion(9), world.catalog)


def test_a_stopped_network_is_started_by_a_deploy(tmp_path: Path) -> None:
    """A deploy after an undeploy sets unchanged fragments to running."""
    world = World.new()
    _deploy(world, tmp_path)
    world.catalog.fragments.set_desired(CARS, DesiredState.STOPPED)
    assert _deploy(world, tmp_path).changed
    records = world.catalog.fragments.of(CARS)
    assert {(r.desired, r.version) for r in records} == {(DesiredState.RUNNING, 1)}


def test_the_loser_of_two_deploys_gets_a_retryable_error(tmp_path: Path) -> None:
    """Both planned against the same version; the second to write changes nothing."""
    world = World.new()
    first = _compare(world, tmp_path / "a")
    second = _compare(world, tmp_path / "b", DOCUMENT.replace("speed > 0", "speed > 5"))
    deploy(first, world.servers, lambda _: None)
    with pytest.raises(RetryError):
        deploy(second, world.servers, lambda _: None)
    assert {r.version for r in world.catalog.fragments.of(CARS)} == {1}


def test_without_auto_create_every_missing_topic_is_listed(tmp_path: Path) -> None:
    """With the settings of each topic; nothing is created or registered."""
    world = World.new()
    found = _compare(world, tmp_path, f"auto_create: false\n{DOCUMENT}")
    with pytest.raises(DeployError) as caught:
        deploy(found, world.servers, lambda _: None)
    text = str(caught.value)
    assert "topic car-sightings does not exist" in text
    assert "topic us.cars.moving.markers does not exist" in text
    assert "partition" in text
    assert not world.kafka.topics
    assert not world.registry.subjects()


def test_output_into_a_topic_with_other_data_is_refused(tmp_path: Path) -> None:
    """Records without a registered schema are other data."""
    world = World.new()
    world.kafka.add("moving-cars", records=7)
    with pytest.raises(DeployError) as caught:
        _deploy(world, tmp_path)
    assert "moving-cars holds records already" in str(caught.value)
    assert caught.value.problems[0].box == "moving"
    assert not world.registry.subjects()


OTHER = """\
network: trucks
streams:
  sightings: {topic: %s, event_time: seen_at}
boxes:
  fast: {filter: sightings, where: speed > 100}
outputs:
  fast: {topic: %s}
"""


BY_FILE = "schema: sighting.avsc"


@pytest.mark.parametrize(
    ("reads", "writes", "message"),
    [
        (
            f"car-sightings, {BY_FILE}",
            "moving-cars",
            "topic moving-cars is the output of fragment moving of network cars of participant us",
        ),
        (
            f"us.cars.moving.redrive, {BY_FILE}",
            "fast-cars",
            "stream sightings reads topic us.cars.moving.redrive, which is the redrive topic of",
        ),
        (f"us.cars.moving.dlq, {BY_FILE}", "fast-cars", None),
        ("moving-cars, subject: moving-cars-value", "cars.stopped", None),
    ],
)
def test_two_networks_never_write_one_topic(
    reads: str, writes: str, message: str | None, tmp_path: Path
) -> None:
    """Outputs and dead letters of others can be read; no topic of others can be written."""
    world = World.new()
    _deploy(world, tmp_path)
    topics = set(world.kafka.topics)
    if message is None:
        assert _deploy(world, tmp_path / "other", OTHER % (reads, writes)).changed
        return
    with pytest.raises(DeployError) as caught:
        _deploy(world, tmp_path / "other", OTHER % (reads, writes))
    assert message in str(caught.value)
    assert set(world.kafka.topics) == topics


def test_topics_of_a_network_with_an_unreadable_document_are_protected(
    tmp_path: Path,
) -> None:
    """The catalog contains the topics that it created."""
    world = World.new()
    _deploy(world, tmp_path)
    network = world.catalog.networks.get(CARS)
    assert network is not None
    later = NetworkVersionRecord(CARS, NetworkVersion(2), "format: 9", (), "9:x", NOW, ())
    world.catalog.networks.deploy(
        replace(network, version=NetworkVersion(2)), later, (), NetworkVersion(1)
    )
    with pytest.raises(DeployError, match="topic moving-cars is a topic of network cars"):
        _deploy(world, tmp_path / "other", OTHER % (f"car-sightings, {BY_FILE}", "moving-cars"))


def test_output_that_does_not_fit_the_topics_schema_names_path_and_types(tmp_path: Path) -> None:
    """An incompatible output is refused before anything is changed."""
    world = World.new()
    other = SCHEMA.replace('"name": "speed", "type": "double"', '"name": "speed", "type": "string"')
    world.registry.register("moving-cars-value", other)
    with pytest.raises(DeployError) as caught:
        _deploy(world, tmp_path)
    text = str(caught.value)
    assert "/fields/speed" in text or "speed" in text
    assert "string" in text
    assert "double" in text
    assert not world.kafka.topics


def test_an_input_that_cannot_be_read_names_path_and_types(tmp_path: Path) -> None:
    """The document's schema must be able to read the schema that producers registered."""
    world = World.new()
    theirs = SCHEMA.replace('"name": "car", "type": "string"', '"name": "car", "type": "int"')
    world.registry.register("car-sightings-value", theirs)
    with pytest.raises(DeployError) as caught:
        _deploy(world, tmp_path)
    text = str(caught.value)
    assert "stream sightings cannot read version 1 of car-sightings-value" in text
    assert "int" in text
    assert not world.kafka.topics


MICROS = SCHEMA.replace("timestamp-millis", "timestamp-micros")


def test_an_input_in_another_unit_is_refused(tmp_path: Path) -> None:
    """Avro's rules permit it; every event time would be wrong by a factor of a thousand."""
    world = World.new()
    world.registry.register("car-sightings-value", MICROS)
    with pytest.raises(DeployError) as caught:
        _deploy(world, tmp_path)
    assert (
        "stream sightings cannot read version 1 of car-sightings-value, which producers write: "
        "/fields/seen_at/type: the reader takes long (timestamp-micros) of the writer for long "
        "(timestamp-millis)"
    ) in str(caught.value)
    assert not world.kafka.topics


def test_an_output_in_another_unit_is_refused(tmp_path: Path) -> None:
    """Readers of the topic would read new records in the old unit."""
    world = World.new()
    _deploy(world, tmp_path)
    written = world.registry.latest("moving-cars-value")
    assert written is not None
    other = World.new()
    text = written.text.replace("timestamp-millis", "timestamp-micros")
    other.registry.register("moving-cars-value", text)
    with pytest.raises(DeployError) as caught:
        _deploy(other, tmp_path)
    assert "the schema of moving-cars-value does not fit what is registered" in str(caught.value)
    assert "/fields/seen_at/type" in str(caught.value)


def test_a_reader_schema_with_a_default_reads_older_writers(tmp_path: Path) -> None:
    """A document may have one field more than producers; their schema stays registered."""
    world = World.new()
    theirs = (
        '{"type": "record", "name": "Sighting", "fields": ['
        '{"name": "car", "type": "string"},'
        '{"name": "seen_at", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}'
    )
    world.registry.register("car-sightings-value", theirs)
    path = write_project(
        tmp_path, schema=SCHEMA.replace('"type": "double"}', '"type": "double", "default": 1.0}')
    )
    found = compare(read_document(path, lambda _: None), US, world.servers)
    deploy(found, world.servers, lambda _: None)
    assert len(world.registry.state.versions(SubjectName.parse("car-sightings-value"))) == 1


def test_a_recreated_topic_is_refused_once_it_was_read(tmp_path: Path) -> None:
    """A topic of the same name and another id has other records at the old positions."""
    world = World.new()
    _deploy(world, tmp_path)
    world.kafka.fill("us.cars.moving.markers")
    world.kafka.add("car-sightings")
    with pytest.raises(DeployError, match="deleted and made again"):
        _deploy(world, tmp_path)


def test_a_topic_that_was_recreated_before_anything_ran_is_accepted(tmp_path: Path) -> None:
    """No fragment has positions yet, so the new id is simply recorded."""
    world = World.new()
    _deploy(world, tmp_path)
    world.kafka.add("car-sightings")
    assert _deploy(world, tmp_path).name == "cars@2"
    new_id = world.kafka.topics[TopicName("car-sightings")].topic_id
    for record in world.catalog.fragments.of(CARS):
        assert dict(record.topic_ids)[TopicName("car-sightings")] == new_id


def test_existing_partition_counts_are_followed(tmp_path: Path) -> None:
    """Dead letters have as many partitions as the input that exists."""
    world = World.new()
    world.kafka.add("car-sightings", partitions=7)
    _deploy(world, tmp_path)
    assert len(world.kafka.topics[TopicName("us.cars.moving.dlq")].partitions) == 7


def test_a_stream_by_subject_reads_the_registry(tmp_path: Path) -> None:
    """The newest schema of `subject:` is the reader's, and the catalog stores it."""
    world = World.new()
    world.registry.register("shared-sightings", SCHEMA)
    by_subject = DOCUMENT.replace("schema: sighting.avsc", "subject: shared-sightings")
    _deploy(world, tmp_path, by_subject)
    network = world.catalog.networks.get(CARS)
    assert network is not None
    version = world.catalog.versions.get(CARS, network.version)
    assert version is not None
    assert dict(version.schemas).keys() == {"sightings"}
    assert "car-sightings-value" not in world.registry.subjects()
