import pytest

from schemas.registry import lookup
from schemas.registry.content import Guid, guid_of
from schemas.registry.metadata import Metadata
from schemas.registry.prepare import Sent
from schemas.registry.refused import (
    BadSchemaError,
    NoSchemaError,
    NoSubjectError,
    NoVersionError,
    RegistryRefusal,
)
from tests.unit.schemas.registry.making import INT, LONG, NAME, STRING, RegistryValue, record, to


@pytest.fixture
def registry() -> RegistryValue:
    """Versions live and deleted, in two contexts."""
    made = RegistryValue()
    for text in (INT, LONG, '{"type":"long","p":1}'):
        made.register("s", text)
    made.delete("s", 3)
    made.delete("s", 1)
    made.register("gone", STRING)
    made.delete_all("gone")
    made.register(":.c:s", STRING)
    made.register(":.c:only", Sent(STRING, metadata=Metadata((), (("k", "v"),))))
    return made


@pytest.mark.parametrize(
    ("subject", "number", "deleted", "found"),
    [
        ("s", 2, False, "s 2"),
        ("s", -1, False, "s 2"),
        ("s", -1, True, "s 2"),
        ("s", 1, True, "s 1"),
        ("s", 1, False, ":.c:s 1"),
        ("s", 3, False, NoVersionError),
        ("s", 9, True, NoVersionError),
        ("only", 1, False, ":.c:only 1"),
        ("only", 2, False, NoSubjectError),
        (":.:only", 1, False, ":.c:only 1"),
        (":.d:s", 1, False, NoSubjectError),
        ("gone", 1, False, NoSubjectError),
        ("gone", -1, True, NoVersionError),
        ("gone", 1, True, "gone 1"),
    ],
)
def test_a_version_is_found_by_its_number(
    registry: RegistryValue,
    subject: str,
    number: int,
    deleted: bool,  # noqa: FBT001 - of the table
    found: str | type[RegistryRefusal],
) -> None:
    """A plain name is looked up in the other contexts, too."""
    if isinstance(found, str):
        one = lookup.version(registry.state, NAME(subject), number, deleted=deleted)
        assert f"{one.name} {one.version.number}" == found
        return
    with pytest.raises(found):
        lookup.version(registry.state, NAME(subject), number, deleted=deleted)


@pytest.mark.parametrize(
    ("subject", "text", "deleted", "found"),
    [
        ("s", LONG, False, "s 2"),
        ("s", '{"type":"long"}', False, "s 2"),
        ("s", INT, True, "s 1"),
        ("s", INT, False, NoSchemaError),
        ("s", STRING, False, ":.c:s 1"),
        ("s", "", False, NoSchemaError),
        ("s", "x", False, BadSchemaError),
        ("none", "x", False, BadSchemaError),
        ("none", INT, False, NoSubjectError),
        ("none", "", False, NoSubjectError),
        ("gone", STRING, False, NoSubjectError),
        ("gone", STRING, True, "gone 1"),
        (":.c:s", LONG, False, NoSchemaError),
    ],
)
def test_a_schema_is_looked_up(
    registry: RegistryValue,
    subject: str,
    text: str,
    deleted: bool,  # noqa: FBT001 - of the table
    found: str | type[RegistryRefusal],
) -> None:
    """An invalid schema is reported first, then a missing one."""
    if isinstance(found, str):
        one = registry.lookup(subject, text, deleted=deleted)
        assert f"{one.name} {one.version.number}" == found
        return
    with pytest.raises(found):
        registry.lookup(subject, text, deleted=deleted)


def test_lookup_adds_the_same_metadata_as_registration() -> None:
    """Metadata of the version before, and of the configuration."""
    registry = RegistryValue()
    registry.register("s", Sent(INT, metadata=Metadata((), (("k", "v"),))))
    assert registry.lookup("s", INT).version.number == 1
    with pytest.raises(NoSchemaError):
        registry.lookup("s", Sent(INT, metadata=Metadata((), (("k", "w"),))))
    registry.configure("s", overrideMetadata={"properties": {"o": "1"}})
    registry.register("s", LONG)
    assert registry.lookup("s", LONG).version.number == 2


def test_the_newest_of_several_is_found() -> None:
    """Deleted ones count when they are requested."""
    registry = RegistryValue()
    registry.register("s", INT)
    registry.delete_all("s")
    registry.register("s", Sent(INT, version=-1))
    assert registry.lookup("s", INT, deleted=True).version.number == 2


@pytest.mark.parametrize(
    ("schema_id", "name", "found"),
    [
        (1, "", "s 1"),
        (1, "s", "s 1"),
        (1, "nobody", "s 1"),
        (4, "s", "gone 1"),
        (1, ":.c:", ":.c:s 1"),
        (1, ":.c:s", ":.c:s 1"),
        (2, ":.c:s", None),
        (2, ":.c:only", ":.c:only 1"),
        (2, "only", ":.c:only 1"),
        (9, "", None),
        (1, ":.d:", None),
    ],
)
def test_a_schema_is_found_by_its_id(
    registry: RegistryValue, schema_id: int, name: str, found: str | None
) -> None:
    """Under its subject, then in other contexts, then under any; deleted or not."""
    if found is not None:
        one = lookup.by_id(registry.state, schema_id, NAME(name))
        assert f"{one.name} {one.version.number}" == found
        return
    with pytest.raises(NoSchemaError, match=f"^Schema {schema_id} not found$"):
        lookup.by_id(registry.state, schema_id, NAME(name))


def test_the_users_of_an_id() -> None:
    """All of its context; with only deleted ones the list is empty."""
    registry = RegistryValue()
    registry.register("t", INT)
    registry.register("s", INT)
    registry.delete_all("t")
    users = lookup.users(registry.state, 1, NAME(""), deleted=True)
    assert [(str(name), number) for name, number in users] == [("s", 1), ("t", 1)]
    assert lookup.users(registry.state, 1, NAME("t"), deleted=False) == ((NAME("s"), 1),)
    registry.delete_all("s")
    assert lookup.users(registry.state, 1, NAME(""), deleted=False) == ()
    with pytest.raises(NoSchemaError):
        lookup.users(registry.state, 2, NAME(""), deleted=True)


def _uses(registry: RegistryValue, guid: Guid, context: str = "") -> list[str]:
    found = lookup.by_guid(registry.state, guid, NAME(context).context)
    return [f"{name} {number}" for name, number in found]


def test_a_guid_exists_as_long_as_a_version_has_it() -> None:
    """Its versions, those of the requested context first."""
    registry = RegistryValue()
    guid = guid_of(registry.register("s", INT).content)
    registry.register(":.b:s", INT)
    assert _uses(registry, guid) == ["s 1", ":.b:s 1"]
    assert _uses(registry, guid, ":.b:") == [":.b:s 1", "s 1"]
    for subject in ("s", ":.b:s"):
        registry.delete_all(subject)
        registry.delete_all(subject, permanent=True)
    for one in (guid, Guid("x")):
        with pytest.raises(NoSchemaError, match=f"Schema {one} not found"):
            lookup.by_guid(registry.state, one)


def test_referrers_are_versions() -> None:
    """Deleted ones when they are requested."""
    registry = RegistryValue()
    registry.register("f", record("F"))
    for subject in ("t", "s"):
        registry.register(subject, Sent(record("R", "a:F"), (to("f"),)))
    registry.delete_all("t")
    assert lookup.referrers(registry.state, NAME("f"), 1, deleted=False) == ((NAME("s"), 1),)
    assert len(lookup.referrers(registry.state, NAME("f"), 1, deleted=True)) == 2


@pytest.mark.parametrize(
    ("prefix", "options", "found"),
    [
        ("", {}, ["s"]),
        (":*:", {}, [":.c:only", ":.c:s", "s"]),
        (":*:s", {}, [":.c:s", "s"]),
        (":.c:", {}, [":.c:only", ":.c:s"]),
        (":.c:o", {}, [":.c:only"]),
        ("", {"deleted": True}, ["gone", "s"]),
        (":*:", {"only_deleted": True}, ["gone"]),
        ("x", {"deleted": True}, []),
    ],
)
def test_subjects_are_listed_by_prefix(
    registry: RegistryValue, prefix: str, options: dict[str, bool], found: list[str]
) -> None:
    """A subject is deleted when all of it is."""
    given = {"deleted": False, **options}
    assert [*map(str, lookup.subjects(registry.state, prefix, **given))] == found


def test_the_newest_with_metadata() -> None:
    """All the pairs have to match; without pairs any metadata do."""
    registry = RegistryValue()
    registry.register("s", Sent(INT, metadata=Metadata((), (("a", "1"), ("b", "1")))))
    registry.register("s", Sent(LONG, metadata=Metadata((), (("a", "1"),))))

    def number(*pairs: tuple[str, str]) -> int:
        return lookup.with_metadata(registry.state, NAME("s"), pairs, deleted=False).version.number

    assert (number(("a", "1")), number(("a", "1"), ("b", "1")), number()) == (2, 1, 2)
    with pytest.raises(NoSchemaError):
        number(("a", "2"))
    with pytest.raises(NoSubjectError):
        lookup.with_metadata(registry.state, NAME("x"), (), deleted=False)
