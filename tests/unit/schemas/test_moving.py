import copy
import json
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import InputError, NewerFormatError, RefusedError, UnavailableError
from schemas.client import RegistryClient
from schemas.compatibility import Level
from schemas.dump import Dump, lines, loads
from schemas.entries import SchemaUse, StoredVersion
from schemas.json_value import JsonObject
from schemas.moving import ConflictsError, Plan, bring_in, in_order, plan, read
from schemas.registry.config import Mode
from tests.profiles import examples
from tests.unit.schemas.fake_registry import Answer, FakeRegistry, Request, error
from tests.unit.schemas.rest.running import Service
from tests.unit.schemas.test_administration import admin_of

A = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
B = A.replace("int", "long")
LIST = '{"type":"array","items":"R"}'


def quiet(_what: str, _done: int, _total: int) -> None:
    """Discards log messages."""


def source() -> FakeRegistry:
    """A registry with references, metadata, deletions, a context, levels and a mode."""
    fake = FakeRegistry()
    fake.add("list", '"string"')
    fake.add("record", A, id=40)
    fake.add("record", B, id=7, metadata={"properties": {"owner": "me"}})
    fake.add("list", LIST, id=3, references=[{"name": "R", "subject": "record", "version": 2}])
    fake.add(":.far:record", B, id=1)
    fake.add("gone", A, id=40, deleted=True)
    fake.add("twice", A, id=40, deleted=True)
    fake.add("twice", A, id=40)
    fake.configs = {None: {"compatibilityLevel": "FULL"}, "record": {"compatibilityLevel": "NONE"}}
    fake.modes = {"list": "READONLY"}
    return fake


def dump_of(fake: FakeRegistry, prefix: str = "") -> Dump:
    """The export of it, through a file."""
    made = Dump("http://a", prefix, "2026-01-01T00:00:00Z", *read(admin_of(fake), prefix, quiet))
    return loads("\n".join(lines(made)), "x.jsonl")


def import_into(
    fake: FakeRegistry, dump: Dump, *, whole: bool = False, modes: bool = False
) -> Plan:
    """Import it."""
    what = plan(admin_of(fake), dump, "there", quiet, modes=modes)
    bring_in(admin_of(fake), what, quiet, whole=whole)
    return what


def writes(fake: FakeRegistry) -> list[Request]:
    """The requests that change something."""
    return [one for one in fake.requests if one.method != "GET"]


@pytest.mark.parametrize("whole", [False, True])
def test_an_import_preserves_ids(whole: bool) -> None:  # noqa: FBT001 - the parameter
    """Versions, contents, deletions and levels; the modes are as before; again changes nothing."""
    there = FakeRegistry()
    dump = dump_of(source())
    what = import_into(there, dump, whole=whole)
    assert there.entries() == source().entries()
    assert there.configs == source().configs
    assert set(there.modes.values()) <= {"READWRITE"}
    assert (len(what.register), what.unchanged) == (8, 0)
    there.requests.clear()
    again = import_into(there, dump, whole=whole)
    assert again == Plan((), (), 8, {}, {})
    assert not writes(there)


def test_modes_are_imported_only_on_request() -> None:
    """A registry is often made read-only before the move."""
    there = FakeRegistry()
    import_into(there, dump_of(source()), modes=True)
    assert there.modes["list"] == "READONLY"
    there.requests.clear()
    import_into(there, dump_of(source()), modes=True)
    assert not writes(there)


def test_a_prefix_imports_only_its_subjects() -> None:
    """Global settings are not changed; references must exist."""
    there = FakeRegistry()
    dump = dump_of(source(), "list")
    assert {one.subject for one in dump.versions} == {"list"}
    assert None not in dump.configs
    with pytest.raises(ConflictsError, match="list version 2 refers to record version 2, which is"):
        import_into(there, dump)
    import_into(there, dump_of(source(), "record"))
    import_into(there, dump)
    assert there.versions.keys() == {
        v.use for v in (*dump.versions, *dump_of(source(), "record").versions)
    }


def test_settings_of_a_context_apply_to_it_alone() -> None:
    """Read at an address that names it, too: elsewhere they would be global."""
    with Service() as service:
        service.register(":.c:s", A)
        service.http.put("/config/:.c:", json={"compatibility": "NONE"})
        for address in ("", "/contexts/.c"):
            with closing(RegistryClient(f"{service.server.url}{address}")) as client:
                _, configs, _ = read(client.admin, "", quiet)
            assert configs[":.c:"] == {"compatibilityLevel": "NONE"}
            assert configs.get(None, {}) != configs[":.c:"]


def test_contexts_of_the_file_are_distinct_from_that_of_the_address() -> None:
    """Names without a context are of that of the address; those of references are not."""
    fake = FakeRegistry()
    fake.add("r", A)
    reference = {"name": "R", "subject": ":.:r", "version": 1}
    fake.add(":.c:list", LIST, references=[reference])
    dump = dump_of(fake)
    with Service() as service:
        with (
            closing(RegistryClient(f"{service.server.url}/contexts/.d")) as client,
            pytest.raises(ConflictsError, match="neither in the file nor there"),
        ):
            plan(client.admin, dump, "f", quiet, modes=False)
        with closing(RegistryClient(service.server.url)) as client:
            assert len(plan(client.admin, dump, "f", quiet, modes=False).register) == 2


def test_a_subject_without_a_level_gets_none() -> None:
    """Though registries return the default one as its own, if it has other settings."""
    with Service() as old, Service() as new:
        for service in (old, new):
            service.http.put("/config", json={"compatibility": "FULL"})
        old.register("s", A)
        old.http.put("/config/s", json={"normalize": True})
        with closing(RegistryClient(old.server.url)) as client:
            assert client.admin.own_level("s") is None
            versions, configs, modes = read(client.admin, "", quiet)
        assert configs["s"] == {"normalize": True}
        dump = Dump("", "", "", versions, configs, modes)
        with closing(RegistryClient(new.server.url)) as client:
            bring_in(
                client.admin, plan(client.admin, dump, "f", quiet, modes=False), quiet, whole=False
            )
            assert client.admin.level_in_force("s") is Level.FULL
            assert not plan(client.admin, dump, "f", quiet, modes=False).configs


def test_existing_schemas_stay() -> None:
    """And so do the modes and schemas of other subjects."""
    there = FakeRegistry()
    there.add("other", '"bytes"', id=900)
    there.add("gone", A, id=40)
    there.modes = {"record": "READONLY", None: "READWRITE"}
    what = import_into(there, dump_of(source()))
    assert [str(use) for use in what.delete] == ["twice version 1", "gone version 1"]
    assert there.modes == {"record": "READONLY", None: "READWRITE"}
    assert there.entries().items() >= source().entries().items()


def test_another_content_is_refused_before_any_change() -> None:
    """Every conflict is named, with both sides."""
    there = FakeRegistry()
    there.add("other", '"bytes"', id=40)
    there.add("list", '"string"', id=99)
    with pytest.raises(ConflictsError) as caught:
        import_into(there, dump_of(source()))
    assert "id 40 of record version 1 is another schema there (of other version 1): schema" in str(
        caught.value
    )
    assert "list version 1 has id 99 there, 1 in the file" in str(caught.value)
    assert not writes(there)
    there = FakeRegistry()
    there.add("record", B, id=40)
    with pytest.raises(
        ConflictsError, match=r"record version 1 \(id 40\) is another one there: sch"
    ):
        import_into(there, dump_of(source()))


def test_the_mode_is_restored_after_a_failure() -> None:
    """And the next import continues where it was interrupted."""

    def broken(request: Request) -> Answer | None:
        at_list = request.method == "POST" and request.path[1] == "list"
        return error(42209, "too large") if at_list and request.body["version"] == 2 else None

    there = FakeRegistry(modes={"list": "READONLY"}, broken=broken)
    with pytest.raises(InputError, match="too large") as caught:
        import_into(there, dump_of(source()))
    assert "subject list, version 2 (id 3)" in caught.value.place
    assert there.modes == {"list": "READONLY"}
    there.broken = lambda _: None
    assert len(import_into(there, dump_of(source())).register) < 8
    assert there.entries() == source().entries()


def test_a_mode_that_cannot_be_restored_is_named() -> None:
    """With its former value, and the remedy."""

    def broken(request: Request) -> Answer | None:
        return error(42205, "no") if request.method == "DELETE" and "mode" in request.path else None

    there = FakeRegistry(broken=broken)
    with pytest.raises(RefusedError, match=r"may still be IMPORT: .*gone") as caught:
        import_into(there, dump_of(source()))
    assert "medusa schema mode SUBJECT --reset" in caught.value.hint


def test_a_registry_that_assigns_its_own_ids_is_detected() -> None:
    """At the first of them."""

    def broken(request: Request) -> Answer | None:
        return (200, {"id": 77}) if request.method == "POST" else None

    with pytest.raises(RefusedError, match="gave id 77 instead of 1"):
        import_into(FakeRegistry(broken=broken), dump_of(source()))


def test_a_registry_that_becomes_unreachable() -> None:
    """It is unavailable, whatever else fails meanwhile."""
    there = FakeRegistry()
    what = plan(admin_of(there), dump_of(source()), "there", quiet, modes=False)
    there.broken = lambda request: error(50001, "down") if request.method == "POST" else None
    with pytest.raises(UnavailableError):
        bring_in(admin_of(there), what, quiet, whole=False)
    assert there.modes == {}


def test_rule_sets_dropped_by_a_registry_are_no_conflict() -> None:
    """Confluent's own without a licence drops them."""
    fake, there = FakeRegistry(), FakeRegistry()
    fake.add("s", A, ruleSet={"domainRules": []}, id=5)
    there.add("s", A, id=5)
    assert import_into(there, dump_of(fake)).unchanged == 1


def test_a_subject_alias_is_imported_as_an_alias() -> None:
    """A registry returns the versions of the other one; they are not to become two."""
    fake = FakeRegistry(configs={"twin": {"alias": "s"}})
    fake.add("s", A)
    fake.add("twin", A)
    dump = dump_of(fake)
    assert [one.subject for one in dump.versions] == ["s"]
    assert dump.configs["twin"] == {"alias": "s"}


def test_a_name_may_contain_the_default_context() -> None:
    """References from another context do; order and completeness depend on it."""
    fake, there = FakeRegistry(), FakeRegistry()
    fake.add("s", A)
    fake.add(":.c:y", A, references=[{"name": "R", "subject": ":.:s", "version": 1}])
    assert len(import_into(there, dump_of(fake)).register) == 2


HEAD = {"format": "medusa-schemas", "version": 1, "lines": 1}
VERSION = {"kind": "version", "subject": "s", "version": 1, "id": 1, "schema": A}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no file of schemas"),
        (["{"], "not JSON"),
        (["[]"], "no JSON object"),
        ([{"x": 1}], "no file of schemas"),
        ([HEAD], "not whole: 1 lines were written, 0 are here"),
        ([HEAD, {"kind": "song"}], "kind 'song'"),
        ([HEAD, {"kind": "version"}], "does not have what it should"),
        ([{**HEAD, "lines": True}, VERSION], "not whole"),
        ([{**HEAD, "version": True}, VERSION], "no file of schemas"),
        ([HEAD, {"kind": "mode", "scope": None, "mode": "ODD"}], "ODD"),
        ([{**HEAD, "lines": 2}, VERSION, VERSION], "twice"),
        (
            [{**HEAD, "lines": 2}, VERSION, {**VERSION, "version": 2, "schema": B}],
            "id 1 is of s version 1, and of s version 2",
        ),
    ],
)
def test_malformed_files_are_reported_with_their_line(rows: list[Any], message: str) -> None:
    """Nothing is guessed."""
    text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in rows)
    with pytest.raises(InputError, match=message) as caught:
        loads(text, "x.jsonl")
    assert caught.value.place.startswith("x.jsonl")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        *(
            ({**VERSION, name: number}, f"{name} should be a number from 1 to 2147483647")
            for name in ("id", "version")
            for number in ("1", True, None, 1.5, 0, -1, 2**31, 10**30)
        ),
        ({**VERSION, "subject": ""}, "subject should be a name, not ''"),
        ({**VERSION, "subject": 5}, "subject should be a name, not 5"),
        ({**VERSION, "schema": {}}, "schema should be a text"),
        ({**VERSION, "references": 5}, "references that should be a list"),
        ({**VERSION, "references": [{"name": "x"}]}, "a reference without name"),
        ({**VERSION, "metadata": [1]}, "metadata that should be an object"),
        ({**VERSION, "subject": "\ud800"}, "half of a surrogate pair"),
        ({**VERSION, "schema": '"\ud800"'}, "half of a surrogate pair"),
        ("[" * 5000 + "]" * 5000, "nested more than 64 deep"),
        ("[" * 500_000, "nested more than 64 deep"),
        ('{"kind":"version","id":NaN}', "NaN is no number"),
        ({"kind": "config", "scope": "s", "config": [1]}, "config should be an object"),
        ({"kind": "config", "scope": "", "config": {}}, "scope should be a name"),
        ({"kind": "mode", "scope": ["s"], "mode": "IMPORT"}, "scope should be a name"),
    ],
)
def test_an_impossible_line_is_reported_by_its_number(line: Any, message: str) -> None:
    """Before any request to a registry, whose message would lack it."""
    text = line if isinstance(line, str) else json.dumps(line)
    with pytest.raises(InputError, match=message) as caught:
        loads(f"{json.dumps(HEAD)}\n{text}\n", "x.jsonl")
    assert caught.value.place == "x.jsonl:2"


def test_a_newer_format_is_refused() -> None:
    """It may contain unknown parts."""
    with pytest.raises(NewerFormatError):
        loads(json.dumps({**HEAD, "version": 2}), "x.jsonl")


def test_cyclic_references_are_reported() -> None:
    """No registry accepts them; a file may contain them."""
    refer: JsonObject = {"name": "x", "subject": "s", "version": 1}
    with pytest.raises(InputError, match="in a circle"):
        in_order([StoredVersion("s", 1, 1, A, references=(refer,))])


@st.composite
def entries(draw: st.DrawFn) -> list[StoredVersion]:
    """Versions of a few subjects that refer to earlier ones, ids in any order."""
    count = draw(st.integers(0, 8))
    ids = draw(st.permutations(range(1, count + 1)))
    made: list[StoredVersion] = []
    numbers: dict[str, int] = {}
    for index in range(count):
        subject = draw(st.sampled_from(["a", "b", ":.c:a"]))
        numbers[subject] = numbers.get(subject, 0) + draw(st.integers(1, 2))
        earlier = [one for one in made if one.subject.startswith(":") == subject.startswith(":")]
        to = draw(st.lists(st.sampled_from(earlier), max_size=2)) if earlier else []
        references: list[JsonObject] = [
            {"name": "x", "subject": t.subject, "version": t.version} for t in to
        ]
        text = json.dumps({"type": "fixed", "name": f"F{index}", "size": index})
        entry = StoredVersion(subject, numbers[subject], ids[index], text)
        made.append(replace(entry, references=tuple(references), deleted=draw(st.booleans())))
    return made


@settings(max_examples=examples(40))
@given(entries())
def test_any_registry_is_imported_unchanged(versions: list[StoredVersion]) -> None:
    """Through the file, in an order that a registry accepts; a second import changes nothing."""
    # A registry does not let go of what something that is alive refers to.
    alive: set[SchemaUse] = set()
    for index, one in reversed(list(enumerate(versions))):
        versions[index] = replace(one, deleted=one.deleted and one.use not in alive)
        alive |= set() if versions[index].deleted else set(one.referred)
    dump = loads("\n".join(lines(Dump("r", "", "", tuple(versions)))), "x")
    assert dump.versions == tuple(versions)
    there = FakeRegistry()
    import_into(there, dump)
    found = {use: replace(one, guid="") for use, one in there.entries().items()}
    assert found == {one.use: one for one in versions}
    before = copy.deepcopy(there.versions)
    assert import_into(there, dump).unchanged == len(versions)
    assert there.versions == before
    assert Mode.IMPORT.value not in there.modes.values()
