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
from tests.unit.schemas.registry.making import INT, NAME, RegistryValue, record, to


def test_a_change_returns_all_set_fields() -> None:
    """Of that scope alone."""
    registry = RegistryValue()
    registry.configure("", compatibilityGroup="g")
    registry.configure("s", normalize=True)
    assert registry.configure("s", compatibility="full") == Config(normalize=True, level=Level.FULL)


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
def test_invalid_configurations(subject: str, body: dict[str, Any], code: int) -> None:
    """Of several errors the first: the level, the rules, the name, the mode."""
    registry = RegistryValue()
    registry.mode("s", Mode.READONLY)
    if not code:
        registry.configure(subject, **body)
        return
    with pytest.raises(RegistryRefusal) as caught:
        registry.configure(subject, **body)
    assert caught.value.number == code


def test_a_configuration_is_read_of_a_scope_or_in_force() -> None:
    """The global one always exists, a subject's only when it was set."""
    registry = RegistryValue()
    assert config_of(registry.state, NAME(""), in_force=False) == DEFAULT_CONFIG
    assert config_of(registry.state, NAME("s"), in_force=True) == DEFAULT_CONFIG
    for name in ("s", ":.c:", ":.__GLOBAL:"):
        with pytest.raises(NoConfigError) as caught:
            config_of(registry.state, NAME(name), in_force=False)
        assert caught.value.number == 40408
    registry.configure("s", alias="t")
    assert config_of(registry.state, NAME("s"), in_force=False) == Config(
        alias="t", level=Level.BACKWARD
    )


def test_deleting_a_configuration_returns_the_old_one() -> None:
    """Then wider scopes apply; it has to exist, except for the global one."""
    registry = RegistryValue()
    registry.configure("s", compatibility="NONE")
    old, changes = delete_config(registry.state, NAME("s"))
    registry.state = registry.state.after(changes)
    assert old == Config(level=Level.NONE)
    with pytest.raises(NoSubjectError):
        delete_config(registry.state, NAME("s"))
    assert delete_config(registry.state, NAME("")) == (DEFAULT_CONFIG, ())
    registry.mode("", Mode.READONLY)
    with pytest.raises(NotPermittedError):
        delete_config(registry.state, NAME(""))
    with pytest.raises(NoSubjectError):
        delete_config(registry.state, NAME("s"))


def test_a_mode_is_read_of_a_scope_or_in_force() -> None:
    """The global one always exists."""
    registry = RegistryValue()
    registry.mode("", Mode.IMPORT)
    assert mode_of_name(registry.state, NAME("s"), in_force=True) is Mode.IMPORT
    assert mode_of_name(registry.state, NAME(""), in_force=False) is Mode.IMPORT
    registry.mode("", None)
    assert mode_of_name(registry.state, NAME(""), in_force=False) is Mode.READWRITE
    with pytest.raises(NoModeError) as caught:
        mode_of_name(registry.state, NAME("s"), in_force=False)
    assert caught.value.number == 40409


def test_a_mode_can_be_changed_in_every_mode() -> None:
    """Otherwise it would be permanent."""
    registry = RegistryValue()
    for mode in (*Mode, None, *Mode):
        registry.mode("s", mode)
        assert registry.state.modes.get(NAME("s")) is mode
    with pytest.raises(BadSubjectError):
        registry.mode("__EMPTY", Mode.READONLY)


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
def test_importing_requires_an_empty_scope(scope: str, held_by: str, refused: bool) -> None:  # noqa: FBT001 - of the table
    """Unless it is forced; deleted versions of the scope are removed permanently."""
    registry = RegistryValue()
    registry.register(held_by, INT)
    if refused:
        with pytest.raises(
            NotPermittedError, match=r"^Cannot import since found existing subjects$"
        ):
            registry.mode(scope, Mode.IMPORT, force=False)
    registry.delete_all(held_by)
    registry.mode(scope, Mode.IMPORT, force=False)
    assert bool(registry.numbers(held_by, deleted=True)) is not refused


def test_forced_importing_keeps_everything() -> None:
    """And so does a change from importing to importing."""
    registry = RegistryValue()
    registry.register("s", INT)
    registry.delete_all("s")
    registry.mode("s", Mode.IMPORT, force=True)
    registry.mode("s", Mode.IMPORT, force=False)
    assert registry.numbers("s", deleted=True) == [1]
    registry.mode("", Mode.FORWARD, force=False)
    assert registry.numbers("s", deleted=True) == [1]


def test_importing_keeps_referenced_versions() -> None:
    """References from outside the scope protect; those from inside are removed, too."""
    registry = RegistryValue()
    registry.register("f", record("F"))
    registry.register(":.c:s", Sent(record("R", "a:F"), (to(":.:f"),)))
    registry.delete_all(":.c:s")
    registry.delete_all("f")
    with pytest.raises(RegistryRefusal) as caught:
        registry.mode("", Mode.IMPORT, force=False)
    assert caught.value.number == 42206
    registry.mode(":.__GLOBAL:", Mode.IMPORT, force=False)
    assert not registry.state.subjects


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
    registry = RegistryValue()
    for where, mode in (("", Mode.IMPORT), ("s", Mode.READONLY), (":.c:s", Mode.FORWARD)):
        registry.mode(where, mode)
    if isinstance(old, type):
        with pytest.raises(NoSubjectError):
            delete_mode(registry.state, NAME(name), recursive=recursive)
        return
    found, changes = delete_mode(registry.state, NAME(name), recursive=recursive)
    assert found is old
    assert sorted(map(str, registry.state.after(changes).modes)) == left


def test_the_global_mode_can_always_be_deleted() -> None:
    """There is one by default."""
    assert delete_mode(RegistryValue().state, NAME(""), recursive=False) == (Mode.READWRITE, ())
    assert set_mode(RegistryValue().state, NAME("s"), None, force=False)


def test_a_context_is_empty_without_any_version() -> None:
    """Deleted ones count; configurations do not."""
    registry = RegistryValue()
    context: SubjectName = NAME(":.c:")
    registry.configure(":.c:s", compatibility="NONE")
    check_empty(registry.state, context)
    registry.register(":.c:s", INT)
    registry.delete_all(":.c:s")
    with pytest.raises(ContextNotEmptyError, match=r"'\:\.c\:' is not empty") as caught:
        check_empty(registry.state, context)
    assert caught.value.number == 42211
