"""The verbs of `medusa schema` with an external registry, over HTTP."""

import io
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.entries import SchemaUse
from tests.unit.schemas.fake_registry import Answer, FakeRegistry, Request, serving

Caller = Callable[..., Any]

A = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
WIDER = A.replace("int", "long")
NEEDS_B = A.replace("}]}", '},{"name":"b","type":"string"}]}')


@pytest.fixture
def fake() -> FakeRegistry:
    """A registry with two versions of a subject."""
    made = FakeRegistry()
    made.add("s", A)
    made.add("s", WIDER)
    return made


@pytest.fixture
def schema(medusa: Caller, fake: FakeRegistry) -> Iterator[Caller]:
    """Caller of `medusa schema … --registry URL -o json`, without any installation."""
    with serving(fake) as url:

        def call(*arguments: str, output: str = "json") -> Any:
            return medusa("schema", *arguments, "--registry", url, "-o", output)

        yield call


def test_an_external_registry_needs_no_installation(schema: Caller, fake: FakeRegistry) -> None:
    """Neither ZooKeeper nor Kafka is contacted, and no box is checked."""
    assert schema("list").data["subjects"] == [
        {"subject": "s", "version": 2, "id": 2, "type": "AVRO"}
    ]
    assert schema("show", "s", "--version", "1").data["schema"] == json.loads(A)
    Path("new.avsc").write_text(A, encoding="utf-8")
    registered = schema("register", "new", "new.avsc")
    assert (registered.code, registered.data["boxes_checked"]) == (0, False)
    assert registered.err == ""
    assert SchemaUse("new", 1) in fake.versions


def test_schemas_of_every_type_are_listed_and_shown(schema: Caller, fake: FakeRegistry) -> None:
    """Types other than Avro, and schemas with references, as they are stored."""
    reference = {"name": "R", "subject": "s", "version": 1}
    fake.add("l", '{"type":"array","items":"R"}', references=[reference])
    fake.add("p", "message M {}", schemaType="PROTOBUF", metadata={"properties": {"a": "b"}})
    assert [one["type"] for one in schema("list").data["subjects"]] == ["AVRO", "PROTOBUF", "AVRO"]
    assert schema("show", "l").data["references"] == [reference]
    assert schema("show", "3").data["schema"] == {"type": "array", "items": "R"}
    shown = schema("show", "p").data
    assert (shown["schema"], shown["metadata"]) == ("message M {}", {"properties": {"a": "b"}})
    assert schema("show", "p", output="table").out == "message M {}\n"
    odd = "[" * 300 + "]" * 300
    fake.add("j", odd, schemaType="JSON")
    assert schema("show", "j").data["schema"] == odd
    assert schema("show", "j", output="table").out == f"{odd}\n"


def test_an_invalid_address_is_a_usage_error(medusa: Caller) -> None:
    """With the form of an address; for an external server there is no hint `medusa up`."""
    called = medusa("schema", "list", "--registry", "registry:8081")
    assert called.code == 64
    assert "--registry: registry.url cannot be" in called.err
    down = medusa("schema", "list", "--registry", "http://127.0.0.1:1")
    assert down.code == 69
    assert "medusa up" not in down.err


def test_a_login_in_the_address_is_used_and_never_shown(medusa: Caller) -> None:
    """The login of the settings is for the other registry."""
    with serving(FakeRegistry()) as url:
        inside = url.replace("http://", "http://me:hush@")
        called = medusa("schema", "export", "x.jsonl", "--registry", inside, "-o", "json")
    assert called.data["registry"] == url
    assert "hush" not in Path("x.jsonl").read_text(encoding="utf-8") + called.out


def test_diff_prints_changes_and_the_compatible_levels(schema: Caller, fake: FakeRegistry) -> None:
    """Between the last two, between any two, and with a file."""
    found = schema("diff", "s").data
    assert (found["from"], found["to"]) == (1, 2)
    assert found["changes"] == [
        {
            "kind": "type-widened",
            "path": "/fields/a/type",
            "message": "widened from int to long",
        }
    ]
    assert {level: one["kept"] for level, one in found["levels"].items()} == {
        "BACKWARD": True,
        "FORWARD": False,
        "FULL": False,
    }
    text = schema("diff", "s", "--from", "2", "--to", "1", output="table").out
    assert "/fields/a/type: narrowed from long to int" in text
    assert "BACKWARD: broken\n  - the new schema cannot read" in text
    Path("new.avsc").write_text(NEEDS_B, encoding="utf-8")
    with_file = schema("diff", "s", "new.avsc", "--from", "1").data
    assert with_file["changes"][0]["message"] == "field b (string) was added without a default"
    assert schema("diff", "s", "--from", "2", "--to", "latest", output="table").out.startswith(
        "s: from version 2 to version 2\n  nothing changed"
    )
    fake.add("m", '{"type":"long","logicalType":"timestamp-millis"}')
    fake.add("m", '{"type":"long","logicalType":"timestamp-micros"}')
    assert "values mean something else" in schema("diff", "m", output="table").out


def test_diff_reads_schemas_that_refer_to_others(schema: Caller, fake: FakeRegistry) -> None:
    """Referenced types are inlined."""
    for version in (1, 2):
        reference = {"name": "R", "subject": "s", "version": version}
        fake.add("l", '{"type":"array","items":"R"}', references=[reference])
    assert schema("diff", "l").data["changes"][0]["path"] == "/items/fields/a/type"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("diff", "t"), 65, "does not have the subject"),
        (("diff", "s", "--to", "9"), 65, "does not have version 9 of it"),
        (("diff", "s", "--to", "1"), 65, "no version before 1"),
        (("diff", "s", "--to", "first"), 64, "neither a number from 1 nor latest"),
        (("diff", "s", "new.avsc", "--to", "1"), 64, "FILE is the new schema already"),
        (("diff", "p"), 65, "only Avro"),
        (("delete", "t", "--yes"), 65, "does not have the subject"),
        (("delete", "s", "--version", "9", "--yes"), 65, "does not have version 9 of it"),
        (("delete", "s"), 65, "say --yes"),
        (("level", "FULL"), 64, "--general FULL"),
        (("level", "s", "ODD"), 64, "ODD is none of NONE, BACKWARD"),
        (("level", "--reset"), 64, "--reset needs a SUBJECT"),
        (("level", "s", "FULL", "--reset"), 64, "more than can be done at once"),
        (("export",), 64, "[PREFIX] FILE"),
        (("export", "missing/x.jsonl"), 69, "cannot be written"),
        (("import", "missing.jsonl"), 65, "cannot be read"),
        (("show", ""), 64, "the name is empty"),
        (("level", "", "FULL"), 64, "the name is empty"),
        (("delete", "", "--yes"), 64, "the name is empty"),
        (("show", "\udcff"), 64, "is not UTF-8 text"),
        (("list", "\udcff"), 64, "is not UTF-8 text"),
        (("export", "\udcff", "x.jsonl"), 64, "is not UTF-8 text"),
        (("check", "new.avsc", "--reference", "\udcff:1"), 64, "is not UTF-8 text"),
        (("show", "4294967295"), 65, "does not have 4294967295"),
        (("show", "9" * 5000), 65, "does not have 999"),
    ],
)
def test_mistakes_are_errors(
    schema: Caller, fake: FakeRegistry, arguments: tuple[str, ...], code: int, message: str
) -> None:
    """With a message on stderr and in the data."""
    fake.add("p", "message M {}", schemaType="PROTOBUF")
    fake.add("p", "message N {}", schemaType="PROTOBUF")
    called = schema(*arguments)
    assert (called.code, message in called.err) == (code, True), called.err
    assert called.data["error"]["message"]


def test_evolve_prints_the_allowed_changes(schema: Caller, fake: FakeRegistry) -> None:
    """For the level in force, or for another."""
    found = schema("evolve", "s").data
    assert (found["level"], found["in_force"], found["version"]) == ("BACKWARD", True, 2)
    allowed = {one["change"]: one["allowed"] for one in found["changes"]}
    assert allowed["widen a from long to float"]
    assert not allowed["narrow a from long to int"]
    fake.configs["s"] = {"compatibilityLevel": "FULL_TRANSITIVE"}
    found = schema("evolve", "s").data
    assert found["transitive"]
    assert found["compared_with"] == [1, 2]
    assert found["newest_breaks"], "the first version cannot read the second one's data"
    text = schema("evolve", "s", "--level", "forward", output="table").out
    assert "the newest version must read what is written with a new one" in text
    assert "  widen a number\n    widen a from long to float" in text.split("not allowed:")[1]
    assert "because the old schema (latest) cannot read data" in text


def test_levels_are_shown_set_and_reset(schema: Caller) -> None:
    """Setting the present level changes nothing."""
    assert schema("level").data["level"] == "BACKWARD"
    assert schema("level", "s").data["own"] is None
    assert schema("level", "s", "full").data["changed"] is True
    again = schema("level", "s", "FULL", output="table")
    assert again.out == "s: level is FULL already (its own)\n"
    assert schema("level", "--general", "NONE").data["level"] == "NONE"
    assert schema("level", "s", "--reset", output="table").out == (
        "s: level is now NONE (as for all)\n"
    )
    assert schema("level", "s", "--reset").data["changed"] is False


def test_modes_are_shown_set_and_reset(schema: Caller) -> None:
    """As levels are."""
    assert schema("mode", "s", "READONLY").data == {
        "schema_version": 1,
        "subject": "s",
        "mode": "READONLY",
        "own": "READONLY",
        "changed": True,
    }
    assert schema("mode", output="table").out == (
        "all subjects without one of their own: mode is READWRITE\n"
    )
    assert schema("mode", "s", "--reset").data["mode"] == "READWRITE"


def test_delete_removes_versions_step_by_step(schema: Caller, fake: FakeRegistry) -> None:
    """Referring schemas are named first; repeating a deletion is no error."""
    fake.add(
        "l",
        '{"type":"array","items":"R"}',
        references=[{"name": "R", "subject": "s", "version": 2}],
    )
    dry = schema("delete", "s", "--dry-run").data
    assert [one["version"] for one in dry["versions"]] == [1, 2]
    assert dry["versions"][1]["referrers"] == [{"subject": "l", "version": 1}]
    refused = schema("delete", "s", "--yes")
    assert refused.code == 65
    assert "l version 1 refers to s version 2" in refused.err
    assert schema("delete", "s", "--version", "1", "--yes").data["changed"]
    assert not schema("delete", "s", "--version", "1", "--yes").data["changed"]
    assert schema("delete", "l", "--permanent", "--yes").code == 0
    gone = schema("delete", "s", "--permanent", "--yes", output="table")
    assert gone.out == "deleted versions 1, 2 of s for good\n"
    assert fake.versions == {}


def test_a_registry_is_moved_as_a_file(
    schema: Caller, medusa: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Export, dry run, import, import again."""
    exported = schema("export", "all.jsonl").data
    assert (exported["subjects"], exported["versions"]) == (["s"], 2)
    assert schema("export", "all.jsonl").code == 65
    there = FakeRegistry()
    with serving(there) as url:
        to = ("--registry", url, "-o", "json")
        dry = medusa("schema", "import", "all.jsonl", "--dry-run", *to).data
        assert dry["registered"] == [
            {"subject": "s", "version": 1, "id": 1},
            {"subject": "s", "version": 2, "id": 2},
        ]
        assert there.versions == {}
        assert medusa("schema", "import", "all.jsonl", *to).data["registered"] == dry["registered"]
        again = medusa("schema", "import", "all.jsonl", "--registry", url)
        assert again.out == "nothing to do: 2 versions there already\n"
        piped = schema("export", "s", "-", output="table")
        assert piped.err == "wrote 1 subject, 2 versions\n"
        monkeypatch.setattr("sys.stdin", io.StringIO(piped.out))
        assert medusa("schema", "import", "-", *to).data["unchanged"] == 2


def test_an_interrupted_import_restores_the_mode(schema: Caller, medusa: Caller) -> None:
    """Ctrl-C during the import: the mode is restored, the exit code is 130; it can be repeated."""
    schema("export", "all.jsonl")

    def interrupt(request: Request) -> Answer | None:
        if request.method == "POST" and request.body["version"] == 2:
            signal.raise_signal(signal.SIGINT)
        return None

    there = FakeRegistry()
    with serving(there) as url:
        there.broken = interrupt
        assert medusa("schema", "import", "all.jsonl", "--registry", url).code == 130
        assert there.modes == {}
        there.broken = lambda _: None
        assert medusa("schema", "import", "all.jsonl", "--registry", url).code == 0
    assert len(there.versions) == 2
