import pytest

from schemas.compatibility import Level
from schemas.registry.config import Mode
from schemas.registry.refused import NotPermittedError
from schemas.registry.scopes import (
    aliased,
    check_writable,
    config_in_force,
    mode_in_force,
    scopes,
)
from tests.unit.schemas.registry.making import NAME, RegistryValue


def test_scopes_are_ordered_from_narrow_to_wide() -> None:
    """Global values do not apply to named contexts."""
    assert [*map(str, scopes(NAME("s")))] == ["s", "", ":.__GLOBAL:"]
    assert [*map(str, scopes(NAME(":.c:s")))] == [":.c:s", ":.c:", ":.__GLOBAL:"]
    assert [*map(str, scopes(NAME(":.c:")))] == [":.c:", ":.__GLOBAL:"]
    assert [*map(str, scopes(NAME(":.__GLOBAL:")))] == [":.__GLOBAL:"]


def test_every_field_comes_from_the_narrowest_scope() -> None:
    """Level, group and normalising may come from three places."""
    registry = RegistryValue()
    registry.configure(":.__GLOBAL:", compatibility="NONE", normalize=True, compatibilityGroup="g")
    registry.configure("", compatibility="FULL", normalize=False, alias="x")
    registry.configure("s", compatibilityGroup="h")
    own = config_in_force(registry.state, NAME("s"))
    assert (own.level, own.normalize, own.group, own.alias) == (Level.FULL, False, "h", None)
    other = config_in_force(registry.state, NAME(":.c:s"))
    assert (other.level, other.normalize, other.group) == (Level.NONE, True, "g")
    assert config_in_force(RegistryValue().state, NAME("s")).level is Level.BACKWARD


@pytest.mark.parametrize(
    ("set_modes", "name", "found"),
    [
        ({}, "s", Mode.READWRITE),
        ({"": Mode.IMPORT}, "s", Mode.IMPORT),
        ({"": Mode.IMPORT}, ":.c:s", Mode.READWRITE),
        ({":.__GLOBAL:": Mode.READONLY}, ":.c:s", Mode.READONLY),
        ({":.__GLOBAL:": Mode.READONLY, ":.c:": Mode.READWRITE}, ":.c:s", Mode.READWRITE),
        ({"": Mode.READONLY, "s": Mode.IMPORT}, "s", Mode.IMPORT),
        ({"": Mode.READONLY_OVERRIDE, "s": Mode.IMPORT}, "s", Mode.READONLY_OVERRIDE),
        ({"": Mode.READONLY_OVERRIDE}, ":.c:s", Mode.READONLY_OVERRIDE),
        ({":.__GLOBAL:": Mode.READONLY_OVERRIDE, "s": Mode.IMPORT}, "s", Mode.READONLY_OVERRIDE),
        ({"t": Mode.READONLY_OVERRIDE}, "s", Mode.READWRITE),
    ],
)
def test_the_nearest_mode_is_in_force(set_modes: dict[str, Mode], name: str, found: Mode) -> None:
    """Unless the global read-only override is set."""
    registry = RegistryValue()
    for where, mode in set_modes.items():
        registry.mode(where, mode)
    assert mode_in_force(registry.state, NAME(name)) is found


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("s", "Subject s in context  is in read-only mode"),
        ("", "Subject null in context  is in read-only mode"),
        (":.c:s", "Subject :.c:s in context :.c: is in read-only mode"),
    ],
)
def test_a_read_only_scope_is_refused_with_confluents_message(name: str, told: str) -> None:
    """Byte for byte, including two blanks."""
    registry = RegistryValue()
    check_writable(registry.state, NAME(name))
    registry.mode(name, Mode.READONLY)
    with pytest.raises(NotPermittedError) as caught:
        check_writable(registry.state, NAME(name))
    assert (caught.value.number, caught.value.message) == (42205, told)


def test_one_alias_is_resolved() -> None:
    """An alias of an alias is not; it is in the same context unless it names another."""
    registry = RegistryValue()
    registry.configure("a", alias="b")
    registry.configure("b", alias="c")
    registry.configure(":.x:a", alias="b")
    registry.configure(":.x:d", alias=":.y:b")
    found = [str(aliased(registry.state, NAME(one))) for one in ("a", "c", ":.x:a", ":.x:d")]
    assert found == ["b", "c", ":.x:b", ":.y:b"]
