from typing import Any

import pytest

from schemas.compatibility import Level
from schemas.registry.config import DEFAULT_CONFIG, Config, Mode
from schemas.registry.names import SubjectName
from schemas.registry.prepare import Sent
from schemas.registry.refused import (
    BadSubjectError,
    ContextNotEmptyError,
    NoConfigError,
    NoModeError,
    NoSubjectError,
    NotPermittedError,
    RegistryRefusal,
)
from schemas.registry.tune import (
    check_empty,
    config_of,
    delete_config,
    delete_mode,
    mode_of_name,
    set_mode,
)
from tests.unit.schemas.registry.making import INT, NAME, Held, record, to


def test_a_change_answers_with_all_that_is_set() -> None:
    """Of that scope alone."""
    held = Held()
    held.configure("", compatibilityGroup="g")
    held.configure("s", normalize=True)
    assert held.configure("s", compatibility="full") == Config(normalize=True, level=Level.FULL)


@pytest.mark.parametrize(
    ("subject", "body", "code"),
    [
        ("__GLOBAL", {"compatibility": "x"}, 42203),
        ("__GLOBAL", {"defaultRuleSet": {"domainRules": [{}]}}, 42210),
        ("__GLOBAL", {}, 42208),
        ("a\n", {}, 42208),
        ("s", {"compatibility": "FULL"}, 42205),
        ("other", {"compatibility": "FULL"}, 0),
        (":.__GLOBAL:", {"compatibility": "FULL"}, 0),
    ],
)
def test_what_cannot_be_configured(subject: str, body: dict[str, Any], code: int) -> None:
    """Of several mistakes the first: the level, the rules, the name, the mode."""
    held = Held()
    held.mode("s", Mode.READONLY)
    if not code:
        held.configure(subject, **body)
        return
    with pytest.raises(RegistryRefusal) as caught:
        held.configure(subject, **body)
    assert caught.value.number == code


def test_a_configuration_is_read_where_it_stands_or_in_force() -> None:
    """The whole registry always has one, a subject only when it was set."""
    held = Held()
    assert config_of(held.state, NAME(""), in_force=False) == DEFAULT_CONFIG
    assert config_of(held.state, NAME("s"), in_force=True) == DEFAULT_CONFIG
    for name in ("s", ":.c:", ":.__GLOBAL:"):
        with pytest.raises(NoConfigError) as caught:
            config_of(held.state, NAME(name), in_force=False)
        assert caught.value.number == 40408
    held.configure("s", alias="t")
    assert config_of(held.state, NAME("s"), in_force=False) == Config(
        alias="t", level=Level.BACKWARD
    )


def test_deleting_a_configuration_gives_the_old_one() -> None:
    """Then wider scopes decide; there has to be one, but for the whole registry."""
    held = Held()
    held.configure("s", compatibility="NONE")
    old, changes = delete_config(held.state, NAME("s"))
    held.state = held.state.after(changes)
    assert old == Config(level=Level.NONE)
    with pytest.raises(NoSubjectError):
        delete_config(held.state, NAME("s"))
    assert delete_config(held.state, NAME("")) == (DEFAULT_CONFIG, ())
    held.mode("", Mode.READONLY)
    with pytest.raises(NotPermittedError):
        delete_config(held.state, NAME(""))
    with pytest.raises(NoSubjectError):
        delete_config(held.state, NAME("s"))


def test_a_mode_is_read_where_it_stands_or_in_force() -> None:
    """The whole registry always has one."""
    held = Held()
    held.mode("", Mode.IMPORT)
    assert mode_of_name(held.state, NAME("s"), in_force=True) is Mode.IMPORT
    assert mode_of_name(held.state, NAME(""), in_force=False) is Mode.IMPORT
    held.mode("", None)
    assert mode_of_name(held.state, NAME(""), in_force=False) is Mode.READWRITE
    with pytest.raises(NoModeError) as caught:
        mode_of_name(held.state, NAME("s"), in_force=False)
    assert caught.value.number == 40409


def test_a_mode_can_be_left_in_every_mode() -> None:
    """Else there would be no way out."""
    held = Held()
    for mode in (*Mode, None, *Mode):
        held.mode("s", mode)
        assert held.state.modes.get(NAME("s")) is mode
    with pytest.raises(BadSubjectError):
        held.mode("__EMPTY", Mode.READONLY)


@pytest.mark.parametrize(
    ("scope", "held_by", "refused"),
    [
        ("s", "s", True),
        ("s", "t", False),
        ("", "t", True),
        ("", ":.c:s", False),
        (":.c:", ":.c:s", True),
        (":.c:", "s", False),
        (":.c:s", ":.c:t", False),
        (":.__GLOBAL:", ":.c:s", True),
        (":.__GLOBAL:x", ":.c:s", False),
        (":.__GLOBAL:x", "x", False),
    ],
)
def test_importing_begins_with_nothing(scope: str, held_by: str, refused: bool) -> None:  # noqa: FBT001 - of the table
    """Unless it is forced; deleted versions of the scope go for good."""
    held = Held()
    held.register(held_by, INT)
    if refused:
        with pytest.raises(
            NotPermittedError, match=r"^Cannot import since found existing subjects$"
        ):
            held.mode(scope, Mode.IMPORT, force=False)
    held.delete_all(held_by)
    held.mode(scope, Mode.IMPORT, force=False)
    assert bool(held.numbers(held_by, deleted=True)) is not refused


def test_forced_importing_leaves_everything() -> None:
    """And so does a change from importing to importing."""
    held = Held()
    held.register("s", INT)
    held.delete_all("s")
    held.mode("s", Mode.IMPORT, force=True)
    held.mode("s", Mode.IMPORT, force=False)
    assert held.numbers("s", deleted=True) == [1]
    held.mode("", Mode.FORWARD, force=False)
    assert held.numbers("s", deleted=True) == [1]


def test_importing_leaves_what_others_refer_to() -> None:
    """References from outside the scope protect; those from inside go, too."""
    held = Held()
    held.register("f", record("F"))
    held.register(":.c:s", Sent(record("R", "a:F"), (to(":.:f"),)))
    held.delete_all(":.c:s")
    held.delete_all("f")
    with pytest.raises(RegistryRefusal) as caught:
        held.mode("", Mode.IMPORT, force=False)
    assert caught.value.number == 42206
    held.mode(":.__GLOBAL:", Mode.IMPORT, force=False)
    assert not held.state.subjects


@pytest.mark.parametrize(
    ("name", "recursive", "old", "left"),
    [
        ("s", False, Mode.READONLY, ["", ":.c:s"]),
        ("s", True, Mode.READONLY, ["", ":.c:s"]),
        ("", False, Mode.IMPORT, [":.c:s", "s"]),
        ("", True, Mode.IMPORT, [":.c:s"]),
        (":.c:", True, None, ["", "s"]),
        (":.c:", False, NoSubjectError, []),
        ("t", True, NoSubjectError, []),
    ],
)
def test_deleting_modes(name: str, recursive: bool, old: object, left: list[str]) -> None:  # noqa: FBT001 - of the table
    """One, or all of a context."""
    held = Held()
    for where, mode in (("", Mode.IMPORT), ("s", Mode.READONLY), (":.c:s", Mode.FORWARD)):
        held.mode(where, mode)
    if isinstance(old, type):
        with pytest.raises(NoSubjectError):
            delete_mode(held.state, NAME(name), recursive=recursive)
        return
    found, changes = delete_mode(held.state, NAME(name), recursive=recursive)
    assert found is old
    assert sorted(map(str, held.state.after(changes).modes)) == left


def test_the_mode_of_everything_can_always_be_deleted() -> None:
    """There is one by default."""
    assert delete_mode(Held().state, NAME(""), recursive=False) == (Mode.READWRITE, ())
    assert set_mode(Held().state, NAME("s"), None, force=False)


def test_a_context_is_empty_without_any_version() -> None:
    """Deleted ones count; configurations do not."""
    held = Held()
    context: SubjectName = NAME(":.c:")
    held.configure(":.c:s", compatibility="NONE")
    check_empty(held.state, context)
    held.register(":.c:s", INT)
    held.delete_all(":.c:s")
    with pytest.raises(ContextNotEmptyError, match=r"'\:\.c\:' is not empty") as caught:
        check_empty(held.state, context)
    assert caught.value.number == 42211
