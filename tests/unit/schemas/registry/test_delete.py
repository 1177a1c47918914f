import pytest

from schemas.registry.config import Mode
from schemas.registry.prepare import Sent
from schemas.registry.refused import RegistryRefusal
from tests.unit.schemas.registry.making import INT, LONG, NAME, Held, record, to


@pytest.fixture
def held() -> Held:
    """Of `s` version 1 is deleted and 2 is not; all of `gone` is deleted."""
    made = Held()
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
    held: Held,
    subject: str,
    number: int,
    permanent: bool,  # noqa: FBT001 - of the table
    code: int,
    told: str,
) -> None:
    """Every state with every way of deleting."""
    if not code:
        assert held.delete(subject, number, permanent=permanent) == int(told)
        assert int(told) not in held.numbers(subject, deleted=permanent)
        return
    with pytest.raises(RegistryRefusal) as caught:
        held.delete(subject, number, permanent=permanent)
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
    held: Held,
    subject: str,
    permanent: bool,  # noqa: FBT001 - of the table
    code: int,
    told: object,
) -> None:
    """Every state with every way of deleting."""
    if not code:
        assert held.delete_all(subject, permanent=permanent) == told
        assert held.numbers(subject, deleted=permanent) == []
        return
    with pytest.raises(RegistryRefusal) as caught:
        held.delete_all(subject, permanent=permanent)
    assert (caught.value.number, caught.value.message) == (code, told)


def test_permanent_deletion_takes_every_version(held: Held) -> None:
    """Those that were deleted before, too; the configuration goes with the last."""
    held.configure("s", compatibility="NONE")
    held.mode("s", Mode.IMPORT)
    held.delete_all("s")
    assert NAME("s") in held.state.configs
    assert held.delete_all("s", permanent=True) == (1, 2)
    assert NAME("s") not in held.state.configs
    assert NAME("s") not in held.state.modes
    assert NAME("s") not in held.state.subjects


def test_the_configuration_goes_with_the_last_version(held: Held) -> None:
    """Version by version, too."""
    held.configure("s", compatibility="NONE")
    held.delete("s", 1, permanent=True)
    assert NAME("s") in held.state.configs
    held.delete("s", 2)
    held.delete("s", 2, permanent=True)
    assert NAME("s") not in held.state.configs


def _code(held: Held, subject: str, number: int | None, *, permanent: bool) -> int:
    try:
        if number is None:
            held.delete_all(subject, permanent=permanent)
        else:
            held.delete(subject, number, permanent=permanent)
    except RegistryRefusal as refusal:
        return refusal.number
    return 0


@pytest.mark.parametrize("number", [1, None])
def test_what_is_referred_to_stays(number: int | None) -> None:
    """Live schemas protect it from being deleted, deleted ones only from going for good."""
    held = Held()
    held.register("f", record("F"))
    held.register("s", Sent(record("R", "a:F"), (to("f"),)))
    assert _code(held, "f", number, permanent=False) == 42206
    assert _code(held, "f", number, permanent=True) == 42206
    held.delete_all("s")
    assert _code(held, "f", number, permanent=False) == 0
    assert _code(held, "f", number, permanent=True) == 42206
    held.delete_all("s", permanent=True)
    assert _code(held, "f", number, permanent=True) == 0


def test_references_within_a_subject_do_not_hold_it() -> None:
    """A version holds another of its subject, but not the subject."""
    held = Held()
    held.configure("s", compatibility="NONE")
    held.register("s", record("F"))
    held.register("s", Sent(record("R", "a:F"), (to("s"),)))
    assert _code(held, "s", 1, permanent=False) == 42206
    assert held.delete_all("s") == (1, 2)
    assert held.delete_all("s", permanent=True) == (1, 2)
    assert not held.state.referrers


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
    held: Held,
    subject: str,
    number: int | None,
    permanent: bool,  # noqa: FBT001 - of the table
    code: int,
) -> None:
    """What is not there is told first; importing does not forbid deleting."""
    held.mode("", Mode.READONLY)
    assert _code(held, subject, number, permanent=permanent) == code
    held.mode("", Mode.IMPORT)
    assert held.delete_all("s") == (2,)
