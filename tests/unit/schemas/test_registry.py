import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.memory_store import MemoryStore, MemoryTree
from brokers.versioned_store import Create, Operation
from pipeline.errors import (
    BrokenInvariantError,
    RefusedError,
    RetryError,
    SchemaError,
    UnavailableError,
)
from pipeline.ids import SchemaId, SchemaVersion, Subject, ZnodePath
from schemas.compatibility import Level
from schemas.records import BadLevelError, BadSubjectError, IncompatibleSchemaError
from schemas.registry import Registry
from schemas.store import LostRaceError, SubjectState, VersionEntry, ZnodeSchemaStore
from tests.unit.schemas.strategies import calm

ROOT = ZnodePath("/medusa/schemas")


def _text(*fields: str, doc: str = "") -> str:
    """A record whose fields all have defaults, so that every set of them fits every other."""
    listed = [{"name": name, "type": "int", "default": 0} for name in fields]
    return json.dumps({"type": "record", "name": "R", "doc": doc, "fields": listed})


def _registry(tree: MemoryTree | None = None) -> Registry:
    return Registry(ZnodeSchemaStore(MemoryStore(tree or MemoryTree()), ROOT))


def test_the_same_content_is_the_same_version() -> None:
    """Registering again, in another spelling, changes nothing."""
    registry = _registry()
    first = registry.register("s", _text("a"))
    again = registry.register("s", json.dumps(json.loads(_text("a")), indent=2, sort_keys=True))
    assert (first.id, first.version) == (1, 1)
    assert again == first
    assert registry.versions("s") == (first,)


def test_the_same_content_under_another_subject_keeps_its_id() -> None:
    """Ids belong to contents, versions to subjects."""
    registry = _registry()
    registry.register("s", _text("a"))
    registry.register("s", _text("b"))
    other = registry.register("t", _text("b"))
    assert (other.id, other.version) == (2, 1)
    assert registry.uses(SchemaId(2)) == (("s", 2), ("t", 1))
    assert registry.subjects() == ("s", "t")


def test_documentation_makes_a_new_version() -> None:
    """What the author wrote is kept, even where reading is the same."""
    registry = _registry()
    registry.register("s", _text("a"))
    assert registry.register("s", _text("a", doc="new")).version == 2


def test_finding() -> None:
    """By id, by version, latest, by content; None for what is not there."""
    registry = _registry()
    one, two = registry.register("s", _text("a")), registry.register("s", _text("b"))
    assert registry.text(one.id) == one.text
    assert registry.text(SchemaId(9)) is None
    assert registry.version("s", SchemaVersion(1)) == one
    assert registry.version("s", None) == two
    assert registry.version("s", SchemaVersion(3)) is None
    assert registry.version("t", None) is None
    assert registry.versions("t") == ()
    assert registry.lookup("s", _text("a")) == one
    assert registry.lookup("s", _text("c")) is None
    assert registry.lookup("t", _text("a")) is None


def test_what_does_not_fit_is_refused_with_reasons() -> None:
    """An incompatible schema changes nothing, and the reasons name the path."""
    registry = _registry()
    registry.register("s", _text("a"))
    bad = _text("a").replace('"int", "default": 0', '"string"')
    with pytest.raises(IncompatibleSchemaError) as caught:
        registry.register("s", bad)
    assert caught.value.reasons == registry.check("s", bad)
    assert "/fields/a/type: the reader's string cannot read the writer's int" in str(caught.value)
    assert len(registry.versions("s")) == 1
    assert registry.register("t", bad).id == 2


def test_levels_by_subject_and_in_general() -> None:
    """A subject's own level comes first, then the general one, then BACKWARD."""
    registry = _registry()
    registry.register("s", '"int"')
    assert registry.level("s") is Level.BACKWARD
    assert registry.check("s", '"string"')
    registry.set_level(None, "none")
    assert registry.level("s") is Level.NONE
    assert registry.check("s", '"string"') == ()
    registry.set_level("s", "BACKWARD")
    assert registry.level("s") is Level.BACKWARD
    assert registry.own_level("t") is None
    registry.set_level("s", None)
    registry.set_level("s", None)
    assert registry.own_level("s") is None
    assert registry.level("s") is Level.NONE


@pytest.mark.parametrize("level", ["SIDEWAYS", "FULL", ""])
def test_levels_that_are_not_offered_are_refused(level: str) -> None:
    """A level is one of those that the message lists."""
    with pytest.raises(BadLevelError, match="use one of BACKWARD, NONE"):
        _registry().set_level("s", level)


@pytest.mark.parametrize("subject", ["", "a\nb", "x" * 1025])
def test_subjects_that_cannot_be(subject: str) -> None:
    """Empty, with control characters, or too long."""
    with pytest.raises(BadSubjectError):
        _registry().register(subject, '"int"')


@calm
@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=40))
def test_any_other_subject_comes_back(subject: str) -> None:
    """Slashes, dots, percent signs: a subject is found under the name that it was given."""
    registry = _registry()
    registry.register(subject, '"int"')
    registry.set_level(subject, "NONE")
    assert registry.subjects() == (subject,)
    assert registry.own_level(subject) is Level.NONE
    assert len(registry.versions(subject)) == 1


def test_another_process_sees_the_same() -> None:
    """Everything lies in the store."""
    tree = MemoryTree()
    first = _registry(tree).register("s", _text("a"))
    assert _registry(tree).versions("s") == (first,)
    assert _registry(tree).register("t", _text("b")).id == 2


@settings(calm, max_examples=30)
@given(st.lists(st.tuples(st.sampled_from("stu"), st.sampled_from("abcd")), max_size=12))
def test_against_a_model(calls: list[tuple[str, str]]) -> None:
    """Ids count contents, versions count within a subject, in the order of their coming."""
    registry = _registry()
    ids: dict[str, int] = {}
    versions: dict[str, list[str]] = {}
    for subject, field in calls:
        found = registry.register(subject, _text(field))
        ids.setdefault(field, len(ids) + 1)
        known = versions.setdefault(subject, [])
        if field not in known:
            known.append(field)
        assert (found.id, found.version) == (ids[field], known.index(field) + 1)
    assert registry.subjects() == tuple(sorted(versions))


class _Contended(ZnodeSchemaStore):
    """Loses every race for so many times."""

    def __init__(self, losses: int) -> None:
        super().__init__(MemoryStore(MemoryTree()), ROOT)
        self.losses = losses

    def add(self, state: SubjectState, text: str, content_key: str) -> VersionEntry:
        if self.losses:
            self.losses -= 1
            raise LostRaceError("lost")
        return super().add(state, text, content_key)


def test_lost_races_are_tried_again_within_a_bound() -> None:
    """A few losses do not show; without end they are a RetryError."""
    assert Registry(_Contended(5)).register("s", '"int"').id == 1
    with pytest.raises(RetryError, match="too many writers"):
        Registry(_Contended(10_000)).register("s", '"int"')


class _AnswerLost(MemoryStore):
    """Performs a step and then says that it is not known whether it was performed."""

    lose = True

    def apply(self, operations: tuple[Operation, ...]) -> None:
        super().apply(operations)
        if self.lose:
            self.lose = False
            raise UnavailableError("the answer was lost")


def test_a_lost_answer_is_repeated_without_harm() -> None:
    """Whoever registers again after an error finds what was done the first time."""
    registry = Registry(ZnodeSchemaStore(_AnswerLost(MemoryTree()), ROOT))
    with pytest.raises(UnavailableError):
        registry.register("s", '"int"')
    found = registry.register("s", '"int"')
    assert (found.id, found.version) == (1, 1)
    assert registry.register("s", '"long"').id == 2


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", BrokenInvariantError),
        (b"[]", BrokenInvariantError),
        (b'{"id":1}', BrokenInvariantError),
        (b'{"format":2}', RefusedError),
    ],
)
def test_damaged_or_newer_records_are_not_guessed_at(value: bytes, error: type[Exception]) -> None:
    """A record that is not understood stops the reader, with its path."""
    store = MemoryStore(MemoryTree())
    store.make_parents(f"{ROOT}/subjects")
    store.apply((Create(f"{ROOT}/subjects/s", value),))
    with pytest.raises(error, match=f"^{ROOT}/subjects/s: "):
        ZnodeSchemaStore(store, ROOT).subject(Subject("s"))


def test_every_stored_value_carries_a_format() -> None:
    """Whatever is written can be told from what a later version writes."""
    store = MemoryStore(MemoryTree())
    registry = Registry(ZnodeSchemaStore(store, ROOT))
    registry.register("s", '"int"')
    registry.set_level("s", "NONE")
    registry.set_level(None, "NONE")
    seen = 0
    stack: list[str] = [ROOT]
    while stack:
        path = stack.pop()
        stack += [f"{path}/{name}" for name in store.children(path)]
        found = store.get(path)
        if found is not None and found.value:
            assert json.loads(found.value)["format"] == 1
            seen += 1
    assert seen == 6


def test_an_id_without_its_schema_is_a_broken_invariant() -> None:
    """A version whose schema is gone is reported, never passed over."""

    class Forgetful(ZnodeSchemaStore):
        def text(self, schema_id: SchemaId) -> str | None:
            del schema_id
            return None

    store = Forgetful(MemoryStore(MemoryTree()), ROOT)
    with pytest.raises(BrokenInvariantError, match="there is no such schema"):
        Registry(store).register("s", '"int"')


def test_texts_that_are_no_schema_are_refused() -> None:
    """The parser's message comes through."""
    with pytest.raises(SchemaError, match="unknown type"):
        _registry().register("s", '"integer"')
