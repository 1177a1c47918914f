"""Random histories: two registries on one tree, compared with a small model."""

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pipeline.ids import ZnodePath
from schemas.registry.config import Mode
from schemas.registry.content import Reference
from schemas.registry.delete import delete_subject, delete_version
from schemas.registry.lookup import by_id
from schemas.registry.names import Context, SubjectName
from schemas.registry.prepare import Sent
from schemas.registry.refused import RegistryRefusal
from schemas.registry.register import register
from schemas.registry.registry import Decide, Registry
from schemas.registry.scopes import config_in_force, mode_in_force
from schemas.registry.state import Decided, State
from schemas.registry.tune import delete_config, set_config, set_mode
from tests.memory_store import MemoryStore, MemoryTree
from tests.profiles import examples
from tests.unit.schemas.registry.model import Key, Model, Name, Refused, Target

CONTEXTS = [".", ".c"]
SUBJECTS: list[Name] = [(context, subject) for context in CONTEXTS for subject in ("a", "b")]
SCOPES: list[Name] = [*SUBJECTS, (".", ""), (".c", ""), (".__GLOBAL", "")]
LEVELS = ["NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FULL_TRANSITIVE"]
NAMES, ANY_SCOPE = st.sampled_from(SUBJECTS), st.sampled_from(SCOPES)
NUMBERS, PICKS = st.integers(1, 4), st.integers(0, 99)
TEXTS = st.sampled_from(["int", "long", "string"])
KEYS = st.tuples(TEXTS, st.none() | st.none() | st.tuples(NAMES, st.integers(1, 2)))


def _name(name: Name) -> SubjectName:
    return SubjectName(Context(name[0]), name[1])


def _sent(key: Key, given: int | None) -> Sent:
    text, target = key
    references = () if target is None else (Reference("r", _full(target[0]), target[1]),)
    return Sent(f'"{text}"', references, id=given)


def _full(name: Name) -> str:
    return f":{name[0]}:{name[1]}"


def _outcome(call: Callable[[], Any]) -> Any:
    """The result of a call, or the number of its refusal."""
    try:
        return call()
    except (RegistryRefusal, Refused) as refusal:
        return f"refused: {refusal.number}"


class Histories(RuleBasedStateMachine):
    """Each request is sent to one of two registries, and to the model."""

    def __init__(self) -> None:
        super().__init__()
        tree = MemoryTree()
        self.registries = [Registry(MemoryStore(tree), ZnodePath("/r")) for _ in range(2)]
        self.model = Model()
        self.turn = 0

    def teardown(self) -> None:
        """Stop both."""
        for one in self.registries:
            one.close()

    def agree(self, decide: Decide[Any], expected: Callable[[], Any]) -> None:
        """Call both; the results are equal."""
        self.turn += 1
        registry = self.registries[self.turn % 2]
        assert _outcome(lambda: registry.change(decide)) == _outcome(expected)

    @rule(name=NAMES, key=KEYS, given=st.none())
    def register(self, name: Name, key: Key, given: int | None) -> None:
        """Register a schema."""

        def decide(state: State) -> Decided[tuple[int, int]]:
            sent = _sent(key, given)
            made = register(state, _name(name), sent, normal=False, now_ms=1)
            return Decided((made.version.id, made.version.number), made.changes)

        self.agree(decide, lambda: self.model.register(name, key, given))

    @rule(name=NAMES, key=KEYS, given=st.integers(1, 6))
    def register_with_an_id(self, name: Name, key: Key, given: int) -> None:
        """Import a schema, or try to."""
        self.register(name, key, given)

    @rule(name=NAMES, key=KEYS, given=st.integers(1, 6))
    def copy(self, name: Name, key: Key, given: int) -> None:
        """Import a schema into a context in import mode."""
        self.mode((name[0], ""), "IMPORT")
        self.register(name, key, given)
        self.mode((name[0], ""), None)

    @rule(name=NAMES, text=TEXTS, which=PICKS)
    def refer(self, name: Name, text: str, which: int) -> None:
        """Register a schema that refers to an existing one."""
        there = self.existing()
        self.register(name, (text, there[which % len(there)] if there else None), None)

    @rule(which=PICKS, permanent=st.booleans())
    def delete_one(self, which: int, *, permanent: bool) -> None:
        """Delete an existing version."""
        if there := self.existing():
            name, number = there[which % len(there)]
            self.delete(name, number, permanent=permanent)

    def existing(self) -> list[Target]:
        """Existing versions, deleted or not."""
        subjects = sorted(self.model.subjects.items())
        return [(name, number) for name, versions in subjects for number in sorted(versions)]

    @rule(name=NAMES, number=NUMBERS, permanent=st.booleans())
    def delete(self, name: Name, number: int, *, permanent: bool) -> None:
        """Delete a version."""

        def decide(state: State) -> Decided[int]:
            done = delete_version(state, _name(name), number, permanent=permanent, now_ms=2)
            return Decided(*done)

        self.agree(decide, lambda: self.model.delete(name, number, permanent=permanent))

    @rule(name=NAMES, permanent=st.booleans())
    def delete_all(self, name: Name, *, permanent: bool) -> None:
        """Delete a subject."""

        def decide(state: State) -> Decided[tuple[int, ...]]:
            return Decided(*delete_subject(state, _name(name), permanent=permanent, now_ms=2))

        self.agree(decide, lambda: self.model.delete_all(name, permanent=permanent))

    @rule(name=ANY_SCOPE, level=st.none() | st.sampled_from(LEVELS))
    def configure(self, name: Name, level: str | None) -> None:
        """Set a level, or remove it."""

        def decide(state: State) -> Decided[None]:
            if level is None:
                return Decided(None, delete_config(state, _name(name))[1])
            return Decided(None, set_config(state, _name(name), {"compatibility": level})[1])

        self.agree(decide, lambda: self.model.set_level(name, level))

    @rule(
        name=ANY_SCOPE, mode=st.sampled_from(["READONLY", "IMPORT", "READWRITE", None, None, None])
    )
    def mode(self, name: Name, mode: str | None) -> None:
        """Set a mode, or remove it."""
        value = Mode(mode) if mode else None

        def decide(state: State) -> Decided[None]:
            return Decided(None, set_mode(state, _name(name), value, force=True))

        self.agree(decide, lambda: self.model.set_mode(name, mode))

    @rule(context=st.sampled_from(CONTEXTS), number=st.integers(1, 7))
    def read(self, context: str, number: int) -> None:
        """Read a schema by its id."""

        def decide(state: State) -> Decided[str]:
            found = by_id(state, number, SubjectName(Context(context), ""))
            return Decided(found.content.text.strip('"'))

        self.agree(decide, lambda: self.model.by_id(context, number))

    @invariant()
    def registries_equal_the_model(self) -> None:
        """Both registries have the model's contents, levels and modes."""
        state = self.registries[0].state()
        assert state == self.registries[1].state()
        assert {
            (name.context, name.subject): {v.number: (v.id, v.deleted) for v in versions}
            for name, versions in state.subjects.items()
        } == {
            name: {number: (one.id, one.deleted) for number, one in versions.items()}
            for name, versions in self.model.subjects.items()
            if versions
        }
        for name in SCOPES:
            level = config_in_force(state, _name(name)).level
            assert level is not None
            assert level.value == self.model.level(name)
            assert mode_in_force(state, _name(name)).value == self.model.mode(name)

    @invariant()
    def an_id_has_one_content(self) -> None:
        """In its context, after any history."""
        state = self.registries[1].state()
        for name, versions in state.subjects.items():
            for one in versions:
                assert state.guids[name.context, one.id] == one.guid


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=examples(60), stateful_step_count=40)
