import pytest

from schemas.registry.config import Mode
from schemas.registry.prepare import Sent
from schemas.registry.refused import RegistryRefusal
from tests.unit.schemas.registry.making import INT, LONG, NAME, RegistryValue, record, to


@pytest.fixture
def registry() -> RegistryValue:
    """Of `s` version 1 is deleted and 2 is not; all of `gone` is deleted."""
    made = RegistryValue()
    made.register("s", INT)
    made.register("s", LONG)
    made.delete("s", 1)
    made.register("gone", INT)
    made.delete_all("gone")
    return made


@pytest.mark.parametrize(
    ("subject", "number", "permanent", "code", "told"),
    [
        ("s", 2, False, 0, "2"),
        ("s", -1, False, 0, "2"),
        ("s", 1, True, 0, "1"),
        ("gone", 1, True, 0, "1"),
        ("none", 1, False, 40401, "Subject 'none' not found."),
        ("none", -1, True, 40401, "Subject 'none' not found."),
        ("s", 9, False, 40402, "Version 9 not found."),
        ("s", 9, True, 40402, "Version 9 not found."),
        ("gone", -1, False, 40402, "Version -1 not found."),
        ("gone", -1, True, 40402, "Version -1 not found."),
        (
            "s",
            1,
            False,
            40406,
            "Subject 's' Version 1 was soft deleted.Set permanent=true to delete permanently",
        ),
        (
            "s",
            2,
            True,
            40407,
            "Subject 's' Version 2 was not deleted first before being permanently deleted",
        ),
    ],
)
def test_deleting_a_version(
    registry: RegistryValue,
    subject: str,
    number: int,
    permanent: bool,  # noqa: FBT001 - of the table
    code: int,
    told: str,
) -> None:
    """Every state with every way of deleting."""
    if not code:
        assert registry.delete(subject, number, permanent=permanent) == int(told)
        assert int(told) not in registry.numbers(subject, deleted=permanent)
        return
    with pytest.raises(RegistryRefusal) as caught:
        registry.delete(subject, number, permanent=permanent)
    assert (caught.value.number, caught.value.message, caught.value.status) == (code, told, 404)


@pytest.mark.parametrize(
    ("subject", "permanent", "code", "told"),
    [
        ("s", False, 0, (2,)),
        ("gone", True, 0, (1,)),
        ("none", False, 40401, "Subject 'none' not found."),
        ("none", True, 40401, "Subject 'none' not found."),
        (
            "gone",
            False,
            40404,
            "Subject 'gone' was soft deleted.Set permanent=true to delete permanently",
        ),
        (
            "s",
            True,
            40405,
            "Subject 's' was not deleted first before being permanently deleted",
        ),
    ],
)
def test_deleting_a_subject(
    registry: RegistryValue,
    subject: str,
    permanent: bool,  # noqa: FBT001 - of the table
    code: int,
    told: object,
) -> None:
    """Every state with every way of deleting."""
    if not code:
        assert registry.delete_all(subject, permanent=permanent) == told
        assert registry.numbers(subject, deleted=permanent) == []
        return
    with pytest.raises(RegistryRefusal) as caught:
        registry.delete_all(subject, permanent=permanent)
    assert (caught.value.number, caught.value.message) == (code, told)


def test_permanent_deletion_removes_every_version(registry: RegistryValue) -> None:
    """Also previously deleted ones; the configuration is removed with the last."""
    registry.configure("s", compatibility="NONE")
    registry.mode("s", Mode.IMPORT)
    registry.delete_all("s")
    assert NAME("s") in registry.state.configs
    assert registry.delete_all("s", permanent=True) == (1, 2)
    assert NAME("s") not in registry.state.configs
    assert NAME("s") not in registry.state.modes
    assert NAME("s") not in registry.state.subjects


def test_the_configuration_is_removed_with_the_last_version(registry: RegistryValue) -> None:
    """Version by version, too."""
    registry.configure("s", compatibility="NONE")
    registry.delete("s", 1, permanent=True)
    assert NAME("s") in registry.state.configs
    registry.delete("s", 2)
    registry.delete("s", 2, permanent=True)
    assert NAME("s") not in registry.state.configs


def _code(registry: RegistryValue, subject: str, number: int | None, *, permanent: bool) -> int:
    try:
        if number is None:
            registry.delete_all(subject, permanent=permanent)
        else:
            registry.delete(subject, number, permanent=permanent)
    except RegistryRefusal as refusal:
        return refusal.number
    return 0


@pytest.mark.parametrize("number", [1, None])
def test_a_referenced_version_is_not_deleted(number: int | None) -> None:
    """Live referrers prevent any deletion, deleted ones only the permanent one."""
    registry = RegistryValue()
    registry.register("f", record("F"))
    registry.register("s", Sent(record("R", "a:F"), (to("f"),)))
    assert _code(registry, "f", number, permanent=False) == 42206
    assert _code(registry, "f", number, permanent=True) == 42206
    registry.delete_all("s")
    assert _code(registry, "f", number, permanent=False) == 0
    assert _code(registry, "f", number, permanent=True) == 42206
    registry.delete_all("s", permanent=True)
    assert _code(registry, "f", number, permanent=True) == 0


def test_references_within_a_subject_do_not_prevent_its_deletion() -> None:
    """A version protects another of its subject, but not the subject."""
    registry = RegistryValue()
    registry.configure("s", compatibility="NONE")
    registry.register("s", record("F"))
    registry.register("s", Sent(record("R", "a:F"), (to("s"),)))
    assert _code(registry, "s", 1, permanent=False) == 42206
    assert registry.delete_all("s") == (1, 2)
    assert registry.delete_all("s", permanent=True) == (1, 2)
    assert not registry.state.referrers


@pytest.mark.parametrize(
    ("subject", "number", "permanent", "code"),
    [
        ("s", 2, False, 42205),
        ("s", 2, True, 42205),
        ("s", 1, False, 40406),
        ("s", 9, False, 40402),
        ("s", None, False, 42205),
        ("gone", None, False, 40404),
        ("none", None, False, 40401),
    ],
)
def test_nothing_is_deleted_read_only(
    registry: RegistryValue,
    subject: str,
    number: int | None,
    permanent: bool,  # noqa: FBT001 - of the table
    code: int,
) -> None:
    """A missing version is reported first; importing does not forbid deleting."""
    registry.mode("", Mode.READONLY)
    assert _code(registry, subject, number, permanent=permanent) == code
    registry.mode("", Mode.IMPORT)
    assert registry.delete_all("s") == (2,)
