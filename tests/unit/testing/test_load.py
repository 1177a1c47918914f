import io
from pathlib import Path

import fastavro
import pytest

from pipeline.errors import DocumentError, InputError
from pipeline.ids import StreamName
from pipeline.testing.compare import equal
from pipeline.testing.load import Loader, find_tests
from pipeline.testing.run import run_steps
from pipeline.testing.steps import ExpectDeadLetters, Send
from tests.unit.testing.twins import DOCUMENT, SCHEMA, Toys

GOOD = """
network: ../cars.yaml
steps:
  - send: sightings
    records:
      - {car: a, at: "2026-01-01T00:00:01Z"}
      - {car: a, at: "2026-01-01T00:00:02Z", speed: 0}
  - settle
  - expect: moving
    records: [{car: a, speed: 1.0}]
  - expect: counts
    records: [{n: 2, window_end: "2026-01-01T00:01:00Z"}]
"""
OLDER = {
    "type": "record",
    "name": "Sighting",
    "fields": [
        {"name": "car", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder for tests, next to a network."""
    (tmp_path / "cars.yaml").write_text(DOCUMENT, encoding="utf-8")
    (tmp_path / "sighting.avsc").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    return tmp_path / "tests"


def write(folder: Path, text: str, name: str = "t.yaml") -> Path:
    """A test in a file."""
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def no_default() -> Path:
    """For tests that name their network."""
    raise AssertionError


def failures(path: Path) -> list[str]:
    """Run a test; its failures."""
    loaded = Loader(no_default).one(path)
    return [str(failure) for failure in run_steps(loaded.test, Toys(), loaded.file)]


def errors(path: Path) -> list[str]:
    """The errors of a test: lines and messages."""
    with pytest.raises(DocumentError) as caught:
        Loader(no_default).all([path])
    return [f"{Path(p.file).name}:{p.line}: {p.message}" for p in caught.value.problems]


def test_a_successful_test(folder: Path) -> None:
    """Missing fields are sent with their defaults, and are ignored where they are expected."""
    assert failures(write(folder, GOOD)) == []


def test_a_failing_test(folder: Path) -> None:
    """Each step is reported, with the values that differ; the steps after it run."""
    first, second = failures(write(folder, GOOD.replace("n: 2", "n: 3").replace("1.0", "1.5")))
    assert ":9: moving: 1 record expected, 1 came\n" in first
    assert "  speed: expected 1.5, came 1.0\n" in first
    assert "  n: expected 3, came 2\n" in second


def test_unexpected_dead_letters_fail_a_test(folder: Path) -> None:
    """And expected ones do not; of its record some fields are enough."""
    late = (
        GOOD
        + '  - {send: sightings, records: [{car: late, at: "2026-01-01T00:00:03Z"}]}\n'
        + "  - {expect: moving, records: [{car: late}]}\n"
    )
    (found,) = failures(write(folder, late))
    assert "dead_letters: 0 records expected, 1 came" in found
    assert '"record.car": "late"' in found
    expected = "  - dead_letters: [{stream: sightings, reason: late, record: {car: late}}]\n"
    assert failures(write(folder, late + expected)) == []
    (found,) = failures(write(folder, late + expected.replace("late}}", "b}}")))
    assert 'record.car: expected "b", came "late"' in found


def test_values_of_a_dead_letter_are_json(folder: Path) -> None:
    """Of a failed result; a fraction equals the one in the dead letter."""
    letter = "{reason: evaluation_failed, values: {speed: 1.5}}"
    path = write(folder, GOOD + f"  - dead_letters: [{letter}]\n")
    expected = Loader(no_default).one(path).test.steps[-1]
    assert isinstance(expected, ExpectDeadLetters)
    assert equal(expected.letters[0].fields["values.speed"], 1.5)


def test_errors_in_records_are_reported_with_lines(folder: Path) -> None:
    """Of the test, and of the files that it names; with the field."""
    write(folder, '{"car": "a"}\n\n{"car": 1, "at": 0}\n{"car": "b", "at": }\n', "cars.jsonl")
    path = write(
        folder,
        "network: ../cars.yaml\n"
        "steps:\n"
        "  - send: sightings\n"
        "    key: colour\n"
        "    records:\n"
        "      - car: a\n"
        "        at: noon\n"
        "      - {car: a, at: 0}\n"
        "  - {send: sightings, file: cars.jsonl}\n"
        "  - {send: sightings, file: none.jsonl}\n"
        "  - {expect: counts, records: [{m: 1}, 7]}\n"
        "  - dead_letters: [{why: late}, {reason: tired}, {record: {}}, 7,\n"
        "      {stream: sighting}, {box: count}, {values: 1}]\n",
    )
    found = errors(path)
    assert found[0].startswith('t.yaml:7: at: "noon" is not a value of')
    assert found[1] == "t.yaml:8: colour: the key is missing or null"
    assert found[2].startswith("cars.jsonl:1: at: the field is missing")
    assert found[3].startswith("cars.jsonl:3: car: 1 is not")
    assert found[4] == "cars.jsonl:4: not JSON: Expecting value (column 20)"
    assert found[5].startswith(f"t.yaml:10: {folder}/none.jsonl: the file cannot be read")
    assert found[6].startswith("t.yaml:11: m: cars.counts has no such field")
    assert found[7] == "t.yaml:11: a record is a mapping from fields to values"
    assert found[8].startswith("t.yaml:12: why: a dead letter has none")
    assert found[9].startswith("t.yaml:12: reason: there is no such reason")
    assert found[10].startswith("t.yaml:12: record: its stream has to be named")
    assert found[11] == "t.yaml:12: a dead letter is a mapping"
    assert found[12].startswith("t.yaml:13: stream: there is no such stream (there is: sightings,")
    assert found[13].startswith("t.yaml:13: box: there is no such box (there is: counts,")
    assert found[14].startswith("t.yaml:13: values: they are a mapping")


def test_unknown_streams_are_reported_with_the_existing_ones(folder: Path) -> None:
    """A derived stream cannot be sent, an external one cannot be expected."""
    path = write(
        folder,
        "network: ../cars.yaml\n"
        "steps:\n"
        "  - {send: sighting, records: []}\n"
        "  - {send: counts, records: []}\n"
        "  - {expect: sightings, records: []}\n"
        "  - {expect: count, records: []}\n",
    )
    assert errors(path) == [
        "t.yaml:3: send: sighting: there is no such stream",
        "t.yaml:4: send: counts: a box writes it",
        "t.yaml:5: expect: sightings: it comes from outside",
        "t.yaml:6: expect: count: there is no such box",
    ]


def test_every_box_can_be_expected(folder: Path) -> None:
    """Also those without a topic of their own; of a route its branches."""
    route = "  fast: {route: moving, to: {faster: speed > 9}, otherwise: slower}\n"
    write(folder.parent, DOCUMENT.replace("boxes:\n", "boxes:\n" + route), "cars.yaml")
    steps = "steps: [{expect: fast, records: []}, {expect: nope, records: []}]\n"
    path = write(folder, "network: ../cars.yaml\n" + steps)
    with pytest.raises(DocumentError) as caught:
        Loader(no_default).one(path)
    of_route, unknown = caught.value.problems
    assert of_route.message == "expect: fast: it is a route, and its branches are streams"
    assert {"moving", "counts", "busy", "faster", "slower"} == set(unknown.choices)


def test_data_files_are_relative_to_the_test(folder: Path) -> None:
    """So that the path of an error can be opened."""
    (folder / "cars.jsonl").write_text("{", encoding="utf-8")
    steps = "steps: [{send: sightings, file: cars.jsonl}]\n"
    with pytest.raises(DocumentError) as caught:
        Loader(no_default).one(write(folder, "network: ../cars.yaml\n" + steps))
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (f"{folder}/cars.jsonl", 1)


def test_missing_files_of_the_head_are_reported_with_their_lines(folder: Path) -> None:
    """The network and schemas."""
    head = "network: ../nope.yaml\nschemas: {cars-value: nope.avsc}\n"
    assert errors(write(folder, head + "steps: [settle]\n")) == [
        f"t.yaml:1: network: there is no file {folder}/../nope.yaml",
        f"t.yaml:2: schemas: there is no file {folder}/nope.avsc",
    ]


def test_the_output_of_tail_can_be_sent_and_expected(folder: Path) -> None:
    """Records of production become a test: of each line the value counts."""
    around = '{{"topic": "t", "partition": 1, "offset": 7, "timestamp": null, "key": null, {}}}'
    values = ('"value": {"car": "a", "at": 1767225601000}', '"value": {"car": "a", "n": 1}')
    for name, value in zip(("sent.jsonl", "counted.jsonl"), values, strict=True):
        write(folder, around.format(value), name)
    steps = "[{send: sightings, file: sent.jsonl}, settle, {expect: counts, file: counted.jsonl}]"
    assert failures(write(folder, f"network: ../cars.yaml\nsteps: {steps}\n")) == []


def test_avro_files_contain_their_schema(folder: Path) -> None:
    """It may be an older one; its records are sent with it."""
    out = io.BytesIO()
    fastavro.writer(out, OLDER, [{"car": "a", "at": 1767225601000}])
    (folder / "cars.avro").write_bytes(out.getvalue())
    text = GOOD[: GOOD.index("    records:")] + "    file: cars.avro\n  - settle\n"
    path = write(folder, text + "  - {expect: counts, records: [{car: a, n: 1}]}\n")
    (send, *_) = Loader(no_default).one(path).test.steps
    assert isinstance(send, Send)
    assert len(send.records) == 1
    (folder / "cars.avro").write_bytes(out.getvalue()[:-20])
    assert errors(path)[0].startswith("cars.avro:0: this is no Avro file")


def test_records_are_sent_to_the_named_partition(folder: Path) -> None:
    """Their stream then has as many."""
    path = write(
        folder,
        "network: ../cars.yaml\nsteps: [{send: sightings, partition: 2, key: car, "
        "timestamp: 2026-01-01, records: [{car: a, at: 0}]}]\n",
    )
    test = Loader(no_default).one(path).test
    (send,) = test.steps
    assert isinstance(send, Send)
    assert (send.records[0].partition, send.records[0].key) == (2, b"a")
    assert send.records[0].timestamp_ms == 1767225600000
    assert test.partitions == {test.streams.topics[StreamName("sightings")]: 3}


def test_a_test_without_a_network_uses_the_projects(folder: Path) -> None:
    """Which is read once for all tests."""
    reads = []

    def default() -> Path:
        reads.append(1)
        return folder.parent / "cars.yaml"

    path = write(folder, GOOD.replace("network: ../cars.yaml", ""))
    loader = Loader(default)
    first, second = loader.all([path, path])
    assert first.name == "t"
    assert first.test.streams.plan == second.test.streams.plan
    assert len(loader._documents) == 1


def test_schemas_of_a_registry_are_named_by_file(folder: Path) -> None:
    """Without a file for it, the test fails with its name."""
    document = DOCUMENT.replace("schema: sighting.avsc", "subject: cars-value")
    write(folder.parent, document, "cars.yaml")
    path = write(folder, GOOD)
    with pytest.raises(InputError, match="subject cars-value; a test has none"):
        Loader(no_default).one(path)
    write(folder, "schemas: {cars-value: ../sighting.avsc}\n" + GOOD)
    assert failures(path) == []


def test_tests_are_found_in_folders(folder: Path) -> None:
    """Sorted, each once; none at all is an error."""
    with pytest.raises(InputError, match="there is no test"):
        find_tests((), folder)
    with pytest.raises(InputError, match="there is no folder with tests") as caught:
        find_tests((), folder / "none")
    assert "docs/reference/testing.md" in caught.value.hint
    b, a = write(folder, GOOD, "b.yaml"), write(folder, GOOD, "a.yaml")
    assert find_tests((), folder) == (a, b)
    assert find_tests((b, folder), Path()) == (b, a)
    with pytest.raises(InputError, match="there is no such test"):
        find_tests((folder / "c.yaml",), folder)


def test_expecting_nothing_changes_nothing(folder: Path) -> None:
    """The step for dead letters at the end is the only one that is added."""
    path = write(folder, "network: ../cars.yaml\nsteps: [{dead_letters: []}]\n")
    test = Loader(no_default).one(path).test
    assert test.steps == (ExpectDeadLetters((), f"{path}:2"),)
    assert failures(path) == []
