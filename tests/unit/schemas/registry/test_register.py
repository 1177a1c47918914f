import json

import pytest

from schemas.registry.config import Mode
from schemas.registry.metadata import Metadata, Rule, RuleSet
from schemas.registry.names import DEFAULT
from schemas.registry.prepare import Sent
from schemas.registry.refused import (
    BadSchemaError,
    BadSubjectError,
    IncompatibleError,
    NotPermittedError,
    ReferenceExistsError,
    RegistryRefusal,
    TooLargeError,
)
from schemas.types import INT_MAX
from tests.unit.schemas.registry.making import INT, LONG, NAME, STRING, RegistryValue, record, to


def _with(name: str, value: str) -> Metadata:
    return Metadata().with_property(name, value)


def _version(registry: RegistryValue, subject: str = "s") -> str | None:
    metadata = registry.state.content(registry.state.versions(NAME(subject))[-1].guid).metadata
    return metadata.get("confluent:version") if metadata else None


# --- ids and versions ---


def test_ids_are_by_content_and_versions_by_subject() -> None:
    """The same content has one id in a context; contexts count separately."""
    registry = RegistryValue()
    assert registry.at("s", INT) == (1, 1)
    assert registry.at("s", '{"type":"int"}') == (1, 1)
    assert registry.at("t", LONG) == (2, 1)
    registry.configure("t", compatibility="NONE")
    assert registry.at("t", INT) == (1, 2)
    assert registry.at(":.c:s", LONG) == (1, 1)
    assert registry.state.contexts == (DEFAULT, ".c")
    assert registry.at("u", Sent(INT, metadata=Metadata())) == (3, 1)
    assert registry.at("v", Sent(INT, rules=RuleSet(((), (Rule("r"),), ())))) == (4, 1)


def test_notation_makes_no_new_version() -> None:
    """Nor do inlined references."""
    registry = RegistryValue()
    registry.register("f", '{"type":"fixed","name":"F","size":2}')
    whole = record("R", "a", doc="d", p=1, q=2)
    assert registry.at("s", whole) == (2, 1)
    assert registry.at("s", record("R", "a", q=2, p=1, doc="d")) == (2, 1)
    assert registry.at("s", record("R", "a", q=2, p=1)) == (3, 2)
    assert registry.at("t", Sent(record("R", "a:F"), (to("f"),))) == (4, 1)
    inside = record("R", "a").replace('"int"', '{"type":"fixed","name":"F","size":2}')
    assert registry.at("t", inside) == (4, 1)


def test_normalising_is_requested_or_configured() -> None:
    """Then two notations have one id in two subjects."""
    registry = RegistryValue()
    one, other = '{"type":"int","b":1,"a":2}', '{"type":"int","a":2,"b":1}'
    assert registry.at("s", one) == (1, 1)
    assert registry.at("t", other) == (2, 1)
    assert registry.at("u", one, normal=True) == (2, 1)
    registry.configure("v", normalize=True)
    assert registry.at("v", one) == (2, 1)


def test_a_deleted_schema_is_registered_again_under_its_id() -> None:
    """With a new version; the deleted one of the same id is removed permanently."""
    registry = RegistryValue()
    registry.configure("s", compatibility="NONE")
    registry.register("s", INT)
    registry.register("s", LONG)
    registry.delete("s", 1)
    assert registry.at("s", INT) == (1, 3)
    assert registry.numbers("s", deleted=True) == [2, 3]
    registry.delete_all("s")
    assert registry.at("s", STRING) == (3, 4)
    assert registry.numbers("s", deleted=True) == [2, 3, 4]


def test_a_deleted_version_with_referrers_stays() -> None:
    """The deleted schema that refers to it can still be read."""
    registry = RegistryValue()
    registry.register("f", record("F"))
    registry.register("s", Sent(record("R", "a:F"), (to("f"),)))
    registry.delete_all("s")
    registry.delete_all("f")
    assert registry.at("f", record("F")) == (1, 2)
    assert registry.numbers("f", deleted=True) == [1, 2]
    assert registry.lookup("s", Sent(record("R", "a:F"), (to("f"),)), deleted=True).version.id == 2


def test_a_number_is_free_again_after_permanent_deletion() -> None:
    """Only the highest one can be reused."""
    registry = RegistryValue()
    registry.configure("s", compatibility="NONE")
    for text in (INT, LONG):
        registry.register("s", text)
        registry.delete("s", -1)
    registry.delete("s", 2, permanent=True)
    assert registry.at("s", STRING) == (3, 2)


# --- requested versions ---


def test_the_next_version_can_be_requested() -> None:
    """By its number or -1; the version is then in the metadata, so the content differs."""
    registry = RegistryValue()
    assert registry.at("s", INT) == (1, 1)
    assert registry.at("s", Sent(INT, version=-1)) == (1, 1)
    assert registry.at("s", Sent(INT, version=2)) == (2, 2)
    assert _version(registry) == "2"
    assert registry.at("s", INT) == (2, 2)
    assert registry.at("s", Sent('{"type":"int","p":1}', version=-1)) == (3, 3)
    assert _version(registry) == "3"
    with pytest.raises(BadSchemaError, match=r"^Version is not one more than previous version$"):
        registry.register("s", Sent(INT, version=5))


def test_incompatibility_is_reported_before_a_wrong_version() -> None:
    """Of two errors the first."""
    registry = RegistryValue()
    registry.register("s", INT)
    with pytest.raises(IncompatibleError):
        registry.register("s", Sent(STRING, version=9))


@pytest.mark.parametrize("told", ["0", "-1", "7"])
def test_a_requested_version_property_is_corrected(told: str) -> None:
    """For any request: the property is the number of the version."""
    registry = RegistryValue()
    registry.register("s", INT)
    assert registry.at("s", Sent(INT, metadata=_with("confluent:version", told))) == (2, 2)
    assert _version(registry) == "2"


def test_a_correct_version_property_is_found() -> None:
    """The existing schema was registered without it."""
    registry = RegistryValue()
    registry.register("s", INT)
    assert registry.at("s", Sent(INT, metadata=_with("confluent:version", "1"))) == (1, 1)


# --- added metadata ---


def test_metadata_are_merged_with_version_and_configuration() -> None:
    """Defaults first, then those of the request or the version before, then overrides."""
    registry = RegistryValue()
    registry.register("s", Sent(INT, metadata=_with("own", "1"), rules=RuleSet(enable_at="x")))
    added = registry.register("s", LONG).content
    assert added.metadata == _with("own", "1")
    assert added.rules == RuleSet(enable_at="x")
    registry.configure(
        "s",
        defaultMetadata={"properties": {"own": "0", "low": "0"}},
        overrideMetadata={"properties": {"top": "2"}},
        overrideRuleSet={"domainRules": [{"name": "r", "type": "T"}]},
    )
    made = registry.register(
        "s", Sent('{"type":"long","p":1}', metadata=_with("mine", "3"))
    ).content
    assert dict(made.metadata.properties if made.metadata else ()) == {
        "own": "0",
        "low": "0",
        "top": "2",
        "mine": "3",
    }
    assert made.rules == RuleSet(((), (Rule("r", type="T"),), ()), "x")


@pytest.mark.parametrize("text", ["", "  "])
def test_metadata_alone_take_the_previous_text(text: str) -> None:
    """With its references; without a version before there is none."""
    registry = RegistryValue()
    with pytest.raises(BadSchemaError, match=r"^Empty schema$"):
        registry.register("s", text)
    registry.register("f", record("F"))
    registry.register("s", Sent(record("R", "a:F"), (to("f"),)))
    made = registry.register("s", Sent(text, metadata=_with("k", "v")))
    assert (made.version.id, made.version.number) == (3, 2)
    assert made.content.references == (to("f"),)


# --- references ---


def test_a_reference_to_the_latest_is_stored_with_its_number() -> None:
    """So that the content is immutable."""
    registry = RegistryValue()
    registry.register("f", record("F"))
    registry.register("f", record("F", "a="))
    made = registry.register("s", Sent(record("R", "a:F"), (to("f", -1),)))
    assert made.content.references == (to("f", 2),)


def test_references_are_transitive() -> None:
    """Only directly used types have to be named; within a context they stay in it."""
    registry = RegistryValue()
    registry.register(":.c:f", record("F"))
    registry.register(":.c:m", Sent(record("M", "a:F"), (to("f", name="f"),)))
    made = registry.register(":.c:s", Sent(record("R", "a:M", "b:F"), (to("m"),)))
    assert made.version.id == 3
    assert registry.state.referrers[NAME(":.c:f"), 1] == {(NAME(":.c:m"), 1)}
    with pytest.raises(BadSchemaError):
        registry.register("s", Sent(record("R", "a:M"), (to("m"),)))
    registry.register("s", Sent(record("R", "a:M"), (to(":.c:m"),)))


@pytest.mark.parametrize(
    "reference", [to("f", 2), to("f", -1), to("x"), to("gone"), to("gone", -1)]
)
def test_an_unresolvable_reference_is_refused(reference: object) -> None:
    """A new schema cannot refer to a deleted one."""
    registry = RegistryValue()
    registry.register("gone", record("F"))
    registry.delete_all("gone")
    if reference != to("f", -1):
        registry.register("f", record("F"))
    with pytest.raises(BadSchemaError, match="No schema reference found for subject") as caught:
        registry.register("s", Sent(record("R", "a:F"), (reference,)))  # type: ignore[arg-type]
    assert caught.value.number == 42201


def test_of_one_name_the_first_reference_counts() -> None:
    """And two different definitions of one type are refused."""
    registry = RegistryValue()
    registry.register("f", record("F"))
    registry.register("g", record("F", "a"))
    made = registry.register("s", Sent(record("R", "a:F"), (to("f"), to("g"))))
    assert made.content.references == (to("f"), to("g"))
    with pytest.raises(BadSchemaError, match="F is defined twice"):
        registry.register("t", Sent(record("R", "a:F"), (to("f"), to("g", name="other"))))


def test_one_version_may_have_two_names() -> None:
    """Directly and through others; that defines its types twice, in the same way."""
    registry = RegistryValue()
    registry.register("f", record("F"))
    registry.register("m", Sent(record("M", "a:F"), (to("f", name="own"),)))
    text = record("R", "a:F", "b:M")
    made = registry.register(
        "s", Sent(text, (to("f", name="x"), to("f", name="y"), to("m", name="M")))
    )
    assert json.loads(made.content.text) == json.loads(text)
    again = registry.register(
        "s", Sent(text.replace('"F"', record("F"), 1), made.content.references)
    )
    assert again.version == made.version


def test_an_unreadable_schema_is_refused() -> None:
    """Inlined it would be too deep, or contain a type that Avro has no name for."""
    registry = RegistryValue()
    registry.register("n0", record("N0"))
    for n in range(1, 65):
        sent = Sent(record(f"N{n}", f"a:N{n - 1}"), (to(f"n{n - 1}", name=f"N{n - 1}"),))
        registry.register(f"n{n}", sent)
    with pytest.raises(BadSchemaError, match="nested more than 64 deep, with those of the"):
        registry.register("n65", Sent(record("N65", "a:N64"), (to("n64", name="N64"),)))
    registry.register("order", record("Order"))
    registry.register("item", Sent(record("shop.Item", "a:Order"), (to("order"),)))
    registry.register("own", record("shop.Order"))
    sent = Sent(
        record("T", "a:Order", "b:shop.Order", "c:shop.Item"),
        (to("item", name="i"), to("own", name="o")),
    )
    with pytest.raises(BadSchemaError, match=r"mean both shop\.Order and Order"):
        registry.register("t", sent)


def test_schemas_with_equal_text_and_other_references_have_two_ids() -> None:
    """The inlined schema has the referenced type, with a namespace or without."""
    registry = RegistryValue()
    registry.register("order", record("Order"))
    registry.register("item", Sent(record("shop.Item", "a:Order"), (to("order", name="Order"),)))
    made = registry.register("s", Sent(record("shop.Order", "a:Item"), (to("item"),)))
    item = {**json.loads(record("Item", "a:Order")), "namespace": "shop"}
    other = record("shop.Order", "a:Item").replace('"Item"', json.dumps(item))
    registry.configure("s", compatibility="NONE")
    assert registry.register("s", other).version.id != made.version.id


def test_the_number_of_references_is_limited() -> None:
    """A graph of thousands would take the server minutes."""
    registry = RegistryValue()
    many = []
    for n in range(101):
        registry.register(f"f{n}", record(f"F{n}"))
        many.append(to(f"f{n}", name=str(n)))
    registry.register("s", Sent(record(), tuple(many[:100])))
    with pytest.raises(TooLargeError):
        registry.register("t", Sent(record(), tuple(many)))


# --- modes ---

RW, IMPORT, READONLY = "read-write", "import", "read-only"
NO_ID, WITH_ID, AGAIN = Sent(LONG), Sent(LONG, id=9), Sent(INT)


@pytest.mark.parametrize(
    ("mode", "sent", "refused"),
    [
        (Mode.READWRITE, NO_ID, None),
        (Mode.READWRITE, WITH_ID, IMPORT),
        (Mode.READWRITE, AGAIN, None),
        (Mode.READWRITE, Sent(INT, id=1), None),
        (Mode.READWRITE, Sent(INT, id=2), IMPORT),
        (Mode.READONLY, NO_ID, READONLY),
        (Mode.READONLY, WITH_ID, READONLY),
        (Mode.READONLY, AGAIN, None),
        (Mode.READONLY_OVERRIDE, NO_ID, READONLY),
        (Mode.READONLY_OVERRIDE, AGAIN, None),
        (Mode.IMPORT, NO_ID, RW),
        (Mode.IMPORT, WITH_ID, None),
        (Mode.IMPORT, AGAIN, None),
        (Mode.FORWARD, NO_ID, RW),
        (Mode.FORWARD, WITH_ID, None),
        (Mode.FORWARD, AGAIN, None),
    ],
)
def test_permissions_of_modes(mode: Mode, sent: Sent, refused: str | None) -> None:
    """An existing schema is found in every mode."""
    registry = RegistryValue()
    registry.register("s", INT)
    registry.mode("s", mode)
    if refused is None:
        registry.register("s", sent)
        return
    with pytest.raises(NotPermittedError) as caught:
        registry.register("s", sent)
    assert caught.value.message == f"Subject s in context  is not in {refused} mode".replace(
        "is not in read-only", "is in read-only"
    )


def test_importing_accepts_given_ids_and_versions() -> None:
    """Gaps, several ids of one content, overwriting; compatibility is not checked."""
    registry = RegistryValue()
    registry.mode("", Mode.IMPORT)
    assert registry.at("s", Sent(INT, id=10, version=5)) == (10, 5)
    assert registry.at("s", Sent(STRING, id=11)) == (11, 6)
    assert registry.at("s", Sent(INT, id=12, version=2)) == (12, 2)
    assert registry.at("s", Sent(INT, id=10, version=9)) == (10, 9)
    assert registry.numbers("s") == [2, 5, 6, 9]
    assert registry.at("s", Sent(LONG, id=13, version=5)) == (13, 5)
    assert registry.at("t", Sent(INT, id=12)) == (12, 1)
    registry.mode("", None)
    assert registry.at("u", STRING) == (11, 1)
    assert registry.at("u2", INT) == (10, 1)
    assert registry.at("v", record()) == (14, 1)


def test_an_id_has_one_content() -> None:
    """As long as a version, deleted or not, has it; then it can be reused."""
    registry = RegistryValue()
    registry.mode("", Mode.IMPORT)
    registry.register("s", Sent(INT, id=10))
    registry.delete_all("s")
    with pytest.raises(NotPermittedError) as caught:
        registry.register(":.:t", Sent(LONG, id=10))
    assert caught.value.message == "Overwrite new schema with id 10 in context  is not permitted."
    registry.delete_all("s", permanent=True)
    assert registry.at("t", Sent(LONG, id=10)) == (10, 1)
    registry.mode("", None)
    assert registry.at("s", INT) == (11, 1)


def test_versions_end_at_the_largest_number_of_clients() -> None:
    """After an import of the last number there is none for others; reading continues."""
    registry = RegistryValue()
    registry.mode("", Mode.IMPORT)
    registry.register("s", Sent(INT, id=1, version=INT_MAX))
    registry.mode("", None)
    registry.configure("", compatibility="NONE")
    with pytest.raises(NotPermittedError, match="left for another"):
        registry.register("s", STRING)
    assert registry.at("t", INT) == (1, 1)


def test_versions_may_be_imported_below_the_last_one() -> None:
    """Their numbers are given: none has to be free."""
    registry = RegistryValue()
    registry.mode("s", Mode.IMPORT)
    registry.register("s", Sent(INT, id=1, version=INT_MAX))
    assert registry.at("s", Sent(LONG, id=2, version=3)) == (2, 3)
    with pytest.raises(NotPermittedError, match="left for another"):
        registry.register("s", Sent(STRING, id=3))


def test_an_imported_id_near_the_maximum_does_not_end_the_counting() -> None:
    """It continues where it was; ids near the end are used first. No id is assigned twice."""
    registry = RegistryValue()
    registry.register("s", record("A"))
    registry.register("s", record("A", "b="))
    registry.mode("i", Mode.IMPORT)
    registry.register("i", Sent(INT, id=INT_MAX))
    assert [registry.at(f"t{n}", record(f"T{n}"))[0] for n in range(2)] == [3, 4]
    registry.register("i", Sent(STRING, id=INT_MAX - 2))
    assert [registry.at(f"u{n}", record(f"U{n}"))[0] for n in range(3)] == [INT_MAX - 1, 5, 6]
    registry.delete_all("u2")
    registry.delete_all("u2", permanent=True)
    assert registry.at("v", record("V")) == (7, 1)
    assert registry.at("i2", INT) == (INT_MAX, 1)
    registry.mode(":.c:", Mode.IMPORT)
    registry.register(":.c:s", Sent(INT, id=INT_MAX))
    registry.mode(":.c:", None)
    assert registry.at(":.c:t", LONG) == (1, 1)


def test_importing_does_not_replace_referenced_versions() -> None:
    """Deleted or not; nor does it make a schema refer to itself. The same content stays."""
    registry = RegistryValue()
    registry.register("base", record("B"))
    registry.register("user", Sent(record("U", "b:B"), (to("base"),)))
    registry.mode("base", Mode.IMPORT)
    with pytest.raises(ReferenceExistsError):
        registry.register("base", Sent(record("Q"), id=777, version=1))
    registry.delete_all("user")
    with pytest.raises(ReferenceExistsError):
        registry.register("base", Sent(record("Q"), id=777, version=1))
    assert registry.at("base", Sent(record("B"), id=777, version=1)) == (777, 1)
    registry.delete_all("user", permanent=True)
    with pytest.raises(ReferenceExistsError):
        registry.register("base", Sent(record("Q", "b:B"), (to("base"),), id=778, version=1))
    assert registry.at("base", Sent(record("Q"), id=778, version=1)) == (778, 1)


def test_importing_may_refer_to_deleted_versions() -> None:
    """The order in which a registry is copied is irrelevant."""
    registry = RegistryValue()
    registry.mode("", Mode.IMPORT)
    registry.register("f", Sent(record("F"), id=1))
    registry.delete_all("f")
    assert registry.at("s", Sent(record("R", "a:F"), (to("f"),), id=2)) == (2, 1)


# --- errors ---


@pytest.mark.parametrize(
    ("subject", "sent", "error"),
    [
        ("__GLOBAL", Sent("x"), BadSubjectError),
        (":.__GLOBAL:s", Sent(INT), BadSubjectError),
        ("s", Sent("x", id=1), BadSchemaError),
        ("s", Sent(STRING, id=1), NotPermittedError),
        ("s", Sent("", id=1), NotPermittedError),
        ("s", Sent(STRING, version=7), IncompatibleError),
    ],
)
def test_of_many_errors_the_first_is_reported(
    subject: str, sent: Sent, error: type[RegistryRefusal]
) -> None:
    """Subject, schema, mode, empty schema, compatibility, version."""
    registry = RegistryValue()
    registry.register("s", INT)
    with pytest.raises(error):
        registry.register(subject, sent)


def test_all_incompatibilities_are_reported() -> None:
    """The messages are those of the check, in one list."""
    registry = RegistryValue()
    registry.register("s", INT)
    with pytest.raises(IncompatibleError) as caught:
        registry.register("s", STRING)
    assert caught.value.number == 40901
    assert caught.value.message.startswith(
        'Schema being registered is incompatible with an earlier schema for subject "s", details: ['
    )
    assert caught.value.messages[-3:] == (
        "{oldSchemaVersion: 1}",
        "{oldSchema: '\"int\"'}",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    )


def test_deleted_versions_are_not_compared() -> None:
    """Deletion permits an incompatible schema."""
    registry = RegistryValue()
    registry.register("s", INT)
    registry.delete_all("s")
    assert registry.at("s", STRING) == (2, 2)
