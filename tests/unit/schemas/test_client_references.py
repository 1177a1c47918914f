import httpx
import pytest

from pipeline.errors import SchemaError
from pipeline.ids import SchemaId
from schemas.avro import parse
from schemas.client import References, RegistryClient
from schemas.entries import SchemaUse
from schemas.records import IncompatibleSchemaError
from schemas.registry.content import Reference
from tests.unit.schemas.fake_registry import FakeRegistry

A = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
AB = A.replace("]", ',{"name":"b","type":"int"}]')
TOP = '{"type":"record","name":"Top","fields":[{"name":"r","type":"R"}]}'


def _referring() -> tuple[FakeRegistry, RegistryClient]:
    """A registry with a schema that refers to another one, under an id and as a version."""
    fake = FakeRegistry()
    fake.add("r", A)
    fake.add("top", TOP, references=[{"name": "R", "subject": "r", "version": 1}])
    transport = httpx.MockTransport(fake.handle)
    return fake, RegistryClient("http://localhost", transport=transport)


def test_references_are_inlined() -> None:
    """In every call; the referenced schema is requested once."""
    fake, client = _referring()
    by_id, latest = client.schema_of(SchemaId(2)), client.latest("top")
    assert by_id is not None
    assert latest is not None
    assert by_id.text == latest.text == TOP.replace('"R"', A)
    assert client.readable_versions("top") == (latest,)
    requests = [one for one in fake.requests if one.path[:2] == ("subjects", "r")]
    assert [(one.path, one.flag("deleted")) for one in requests] == [
        (("subjects", "r", "versions", "1"), True)
    ]


def test_an_unresolvable_reference_is_reported_with_subject_and_version() -> None:
    """Also a missing one, from any schema."""
    fake, client = _referring()
    del fake.versions[SchemaUse("r", 1)]
    assert client.readable_versions("top") == ()
    with pytest.raises(SchemaError, match="refers to r version 1, which the registry") as caught:
        client.schema_of(SchemaId(2))
    assert caught.value.place == "schema id 2"
    with pytest.raises(SchemaError, match="refers to r version 1") as caught:
        client.latest("top")
    assert caught.value.place == "subject top, version 1"
    fake.add("r", '"top"', references=[{"name": "top", "subject": "top", "version": 1}])
    with pytest.raises(SchemaError, match="to itself: top version 1 -> r version 1 -> top version"):
        client.latest("top")


NEEDS = TOP.replace("]", ',{"name":"more","type":"R"}]')
TO_R = (Reference("R", "r", 1),)


def test_a_schema_is_sent_with_its_references() -> None:
    """To be looked up, checked and registered: the text as its author wrote it."""
    fake, client = _referring()
    assert client.lookup("top", f" {TOP} ", TO_R) == 2
    assert client.lookup("top", NEEDS, TO_R) is None
    assert client.check("top", NEEDS, TO_R) == ()
    assert client.register("top", NEEDS, TO_R) == 3
    sent = [one.body for one in fake.requests if one.method == "POST"]
    references = [{"name": "R", "subject": "r", "version": 1}]
    assert sent == [{"schema": text, "references": references} for text in (TOP, *[NEEDS] * 3)]
    assert fake.versions[SchemaUse("top", 2)]["references"] == references


def test_a_registry_that_was_restored_is_read_again() -> None:
    """A lookup that differs from an earlier one means that ids may be of other schemas."""
    fake, client = _referring()
    assert client.lookup("r", A) == 1
    found = client.schema_of(SchemaId(1))
    assert found is not None
    fake.versions.clear()
    assert client.schema_of(SchemaId(1)) is found  # not asked again
    assert client.lookup("r", A) is None
    assert client.schema_of(SchemaId(1)) is None
    fake.add("r", AB)
    fake.add("r", A)
    assert client.lookup("r", A) == 2
    there = client.schema_of(SchemaId(1))
    assert there is not None
    assert there.text == AB


def test_ids_are_cached_by_schema_and_references() -> None:
    """The same text with another version of another schema is another schema."""
    fake, client = _referring()
    fake.add("r", AB)
    assert client.lookup("top", TOP, TO_R) == 2
    before = len(fake.requests)
    assert client.register("top", TOP, TO_R) == 2
    assert len(fake.requests) == before
    assert client.lookup("top", TOP, (Reference("R", "r", 2),)) is None


def test_incompatibilities_of_a_schema_with_references() -> None:
    """In our messages, of the inlined schemas."""
    fake, client = _referring()
    fake.add("r", AB)
    fake.refused = ("theirs",)
    wants = (Reference("R", "r", 2),)
    (reason,) = client.check("top", TOP, wants)
    assert "/fields/r/type/fields/b" in reason
    with pytest.raises(IncompatibleSchemaError) as caught:
        client.register("top", TOP, wants)
    assert caught.value.reasons == (reason,)


@pytest.mark.parametrize(
    ("text", "references", "message", "place"),
    [
        (TOP, (), "unknown type 'R'", "subject top, /fields/r/type"),
        (TOP, (Reference("R", "r", 9),), "refers to r version 9, which the", "subject top"),
        (NEEDS, (Reference("R", "p", 1),), "PROTOBUF", "subject top, through p version 1"),
        (A.replace("int", "long"), TO_R, "R is defined twice, in different", "subject top, /name"),
    ],
)
def test_a_schema_that_cannot_be_inlined_is_not_sent(
    text: str, references: References, message: str, place: str
) -> None:
    """In any call."""
    fake, client = _referring()
    fake.add("p", "message M {}", schemaType="PROTOBUF")
    for ask in (client.lookup, client.check, client.register):
        with pytest.raises(SchemaError, match=message) as caught:
            ask("top", text, references)
        assert caught.value.place == place
    assert {one.method for one in fake.requests} <= {"GET"}


def test_references_of_a_new_schema_are_in_the_context_of_its_subject() -> None:
    """Unless they name another one; they are sent unchanged."""
    fake, client = _referring()
    fake.add(":.c:r", AB)
    schema = client.read(":.c:top", TOP, TO_R)
    assert schema.used == (parse(AB),)
    other = (Reference("R", ":.:r", 1),)
    assert client.read(":.c:top", TOP, other).used == (parse(A),)
    assert client.lookup(":.c:top", TOP, other) is None
    assert fake.requests[-1].body["references"][0]["subject"] == ":.:r"
