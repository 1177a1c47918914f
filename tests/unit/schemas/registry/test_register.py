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
from tests.unit.schemas.registry.making import INT, LONG, NAME, STRING, Held, record, to


def _with(name: str, value: str) -> Metadata:
    return Metadata().with_property(name, value)


def _version(held: Held, subject: str = "s") -> str | None:
    metadata = held.state.content(held.state.versions(NAME(subject))[-1].guid).metadata
    return metadata.get("confluent:version") if metadata else None


# --- ids and versions ---


def test_ids_go_by_content_and_versions_by_subject() -> None:
    """The same content has one id in a context; contexts count on their own."""
    held = Held()
    assert held.at("s", INT) == (1, 1)
    assert held.at("s", '{"type":"int"}') == (1, 1)
    assert held.at("t", LONG) == (2, 1)
    held.configure("t", compatibility="NONE")
    assert held.at("t", INT) == (1, 2)
    assert held.at(":.c:s", LONG) == (1, 1)
    assert held.state.contexts == (DEFAULT, ".c")
    assert held.at("u", Sent(INT, metadata=Metadata())) == (3, 1)
    assert held.at("v", Sent(INT, rules=RuleSet(((), (Rule("r"),), ())))) == (4, 1)


def test_the_spelling_of_what_is_there_does_not_matter() -> None:
    """Nor whether references are written out."""
    held = Held()
    held.register("f", '{"type":"fixed","name":"F","size":2}')
    whole = record("R", "a", doc="d", p=1, q=2)
    assert held.at("s", whole) == (2, 1)
    assert held.at("s", record("R", "a", q=2, p=1, doc="d")) == (2, 1)
    assert held.at("s", record("R", "a", q=2, p=1)) == (3, 2)
    assert held.at("t", Sent(record("R", "a:F"), (to("f"),))) == (4, 1)
    inside = record("R", "a").replace('"int"', '{"type":"fixed","name":"F","size":2}')
    assert held.at("t", inside) == (4, 1)


def test_normalising_is_asked_for_or_configured() -> None:
    """Then two spellings have one id in two subjects."""
    held = Held()
    one, other = '{"type":"int","b":1,"a":2}', '{"type":"int","a":2,"b":1}'
    assert held.at("s", one) == (1, 1)
    assert held.at("t", other) == (2, 1)
    assert held.at("u", one, normal=True) == (2, 1)
    held.configure("v", normalize=True)
    assert held.at("v", one) == (2, 1)


def test_a_deleted_schema_comes_back_under_its_id() -> None:
    """With a new version; the deleted one of the same id goes for good."""
    held = Held()
    held.configure("s", compatibility="NONE")
    held.register("s", INT)
    held.register("s", LONG)
    held.delete("s", 1)
    assert held.at("s", INT) == (1, 3)
    assert held.numbers("s", deleted=True) == [2, 3]
    held.delete_all("s")
    assert held.at("s", STRING) == (3, 4)
    assert held.numbers("s", deleted=True) == [2, 3, 4]


def test_a_deleted_version_that_is_referred_to_stays() -> None:
    """The deleted schema that refers to it can still be read."""
    held = Held()
    held.register("f", record("F"))
    held.register("s", Sent(record("R", "a:F"), (to("f"),)))
    held.delete_all("s")
    held.delete_all("f")
    assert held.at("f", record("F")) == (1, 2)
    assert held.numbers("f", deleted=True) == [1, 2]
    assert held.lookup("s", Sent(record("R", "a:F"), (to("f"),)), deleted=True).version.id == 2


def test_a_number_is_free_again_after_permanent_deletion() -> None:
    """Only the highest one can come again."""
    held = Held()
    held.configure("s", compatibility="NONE")
    for text in (INT, LONG):
        held.register("s", text)
        held.delete("s", -1)
    held.delete("s", 2, permanent=True)
    assert held.at("s", STRING) == (3, 2)


# --- versions that are asked for ---


def test_the_next_version_can_be_asked_for() -> None:
    """By its number or -1; the version is then told in the metadata, so the content is another."""
    held = Held()
    assert held.at("s", INT) == (1, 1)
    assert held.at("s", Sent(INT, version=-1)) == (1, 1)
    assert held.at("s", Sent(INT, version=2)) == (2, 2)
    assert _version(held) == "2"
    assert held.at("s", INT) == (2, 2)
    assert held.at("s", Sent('{"type":"int","p":1}', version=-1)) == (3, 3)
    assert _version(held) == "3"
    with pytest.raises(BadSchemaError, match=r"^Version is not one more than previous version$"):
        held.register("s", Sent(INT, version=5))


def test_compatibility_is_told_before_a_wrong_version() -> None:
    """Of two mistakes the first."""
    held = Held()
    held.register("s", INT)
    with pytest.raises(IncompatibleError):
        held.register("s", Sent(STRING, version=9))


@pytest.mark.parametrize("told", ["0", "-1", "7"])
def test_a_told_version_is_put_right(told: str) -> None:
    """Whatever a request says: the property is the number of the version."""
    held = Held()
    held.register("s", INT)
    assert held.at("s", Sent(INT, metadata=_with("confluent:version", told))) == (2, 2)
    assert _version(held) == "2"


def test_a_told_version_that_is_right_is_found() -> None:
    """The schema that is there was registered without it."""
    held = Held()
    held.register("s", INT)
    assert held.at("s", Sent(INT, metadata=_with("confluent:version", "1"))) == (1, 1)


# --- what is added ---


def test_metadata_come_from_before_and_from_the_configuration() -> None:
    """Defaults below, what was sent or was there before, overrides on top."""
    held = Held()
    held.register("s", Sent(INT, metadata=_with("own", "1"), rules=RuleSet(enable_at="x")))
    added = held.register("s", LONG).content
    assert added.metadata == _with("own", "1")
    assert added.rules == RuleSet(enable_at="x")
    held.configure(
        "s",
        defaultMetadata={"properties": {"own": "0", "low": "0"}},
        overrideMetadata={"properties": {"top": "2"}},
        overrideRuleSet={"domainRules": [{"name": "r", "type": "T"}]},
    )
    made = held.register("s", Sent('{"type":"long","p":1}', metadata=_with("mine", "3"))).content
    assert dict(made.metadata.properties if made.metadata else ()) == {
        "own": "0",
        "low": "0",
        "top": "2",
        "mine": "3",
    }
    assert made.rules == RuleSet(((), (Rule("r", type="T"),), ()), "x")


@pytest.mark.parametrize("text", ["", "  "])
def test_metadata_alone_take_the_text_before(text: str) -> None:
    """With its references; without a version before there is none."""
    held = Held()
    with pytest.raises(BadSchemaError, match=r"^Empty schema$"):
        held.register("s", text)
    held.register("f", record("F"))
    held.register("s", Sent(record("R", "a:F"), (to("f"),)))
    made = held.register("s", Sent(text, metadata=_with("k", "v")))
    assert (made.version.id, made.version.number) == (3, 2)
    assert made.content.references == (to("f"),)


# --- references ---


def test_a_reference_to_the_latest_is_kept_with_its_number() -> None:
    """So that the content says what it means."""
    held = Held()
    held.register("f", record("F"))
    held.register("f", record("F", "a="))
    made = held.register("s", Sent(record("R", "a:F"), (to("f", -1),)))
    assert made.content.references == (to("f", 2),)


def test_references_lead_on() -> None:
    """Only what is used directly has to be named; in a context they stay in it."""
    held = Held()
    held.register(":.c:f", record("F"))
    held.register(":.c:m", Sent(record("M", "a:F"), (to("f", name="f"),)))
    made = held.register(":.c:s", Sent(record("R", "a:M", "b:F"), (to("m"),)))
    assert made.version.id == 3
    assert held.state.referrers[NAME(":.c:f"), 1] == {(NAME(":.c:m"), 1)}
    with pytest.raises(BadSchemaError):
        held.register("s", Sent(record("R", "a:M"), (to("m"),)))
    held.register("s", Sent(record("R", "a:M"), (to(":.c:m"),)))


@pytest.mark.parametrize(
    "reference", [to("f", 2), to("f", -1), to("x"), to("gone"), to("gone", -1)]
)
def test_a_reference_that_leads_nowhere_is_refused(reference: object) -> None:
    """A new schema cannot refer to a deleted one."""
    held = Held()
    held.register("gone", record("F"))
    held.delete_all("gone")
    if reference != to("f", -1):
        held.register("f", record("F"))
    with pytest.raises(BadSchemaError, match="No schema reference found for subject") as caught:
        held.register("s", Sent(record("R", "a:F"), (reference,)))  # type: ignore[arg-type]
    assert caught.value.number == 42201


def test_of_one_name_the_first_reference_counts() -> None:
    """And two different definitions of one type are refused."""
    held = Held()
    held.register("f", record("F"))
    held.register("g", record("F", "a"))
    made = held.register("s", Sent(record("R", "a:F"), (to("f"), to("g"))))
    assert made.content.references == (to("f"), to("g"))
    with pytest.raises(BadSchemaError, match="F is defined twice"):
        held.register("t", Sent(record("R", "a:F"), (to("f"), to("g", name="other"))))


def test_one_version_may_have_two_names() -> None:
    """Directly and through others; that defines its types twice, in the same way."""
    held = Held()
    held.register("f", record("F"))
    held.register("m", Sent(record("M", "a:F"), (to("f", name="own"),)))
    text = record("R", "a:F", "b:M")
    made = held.register("s", Sent(text, (to("f", name="x"), to("f", name="y"), to("m", name="M"))))
    assert json.loads(made.content.text) == json.loads(text)
    again = held.register("s", Sent(text.replace('"F"', record("F"), 1), made.content.references))
    assert again.version == made.version


def test_what_nobody_could_read_is_refused() -> None:
    """Written out it would be too deep, or name a type that Avro has no name for."""
    held = Held()
    held.register("n0", record("N0"))
    for n in range(1, 65):
        sent = Sent(record(f"N{n}", f"a:N{n - 1}"), (to(f"n{n - 1}", name=f"N{n - 1}"),))
        held.register(f"n{n}", sent)
    with pytest.raises(BadSchemaError, match="nested more than 64 deep, with those of the"):
        held.register("n65", Sent(record("N65", "a:N64"), (to("n64", name="N64"),)))
    held.register("order", record("Order"))
    held.register("item", Sent(record("shop.Item", "a:Order"), (to("order"),)))
    held.register("own", record("shop.Order"))
    sent = Sent(
        record("T", "a:Order", "b:shop.Order", "c:shop.Item"),
        (to("item", name="i"), to("own", name="o")),
    )
    with pytest.raises(BadSchemaError, match=r"mean both shop\.Order and Order"):
        held.register("t", sent)


def test_two_schemas_have_two_ids_though_their_names_read_the_same() -> None:
    """What is written out has the type that was meant, with a namespace or without."""
    held = Held()
    held.register("order", record("Order"))
    held.register("item", Sent(record("shop.Item", "a:Order"), (to("order", name="Order"),)))
    made = held.register("s", Sent(record("shop.Order", "a:Item"), (to("item"),)))
    item = {**json.loads(record("Item", "a:Order")), "namespace": "shop"}
    other = record("shop.Order", "a:Item").replace('"Item"', json.dumps(item))
    held.configure("s", compatibility="NONE")
    assert held.register("s", other).version.id != made.version.id


def test_a_schema_refers_to_so_many_others() -> None:
    """A net of thousands would take the server minutes."""
    held = Held()
    many = []
    for n in range(101):
        held.register(f"f{n}", record(f"F{n}"))
        many.append(to(f"f{n}", name=str(n)))
    held.register("s", Sent(record(), tuple(many[:100])))
    with pytest.raises(TooLargeError):
        held.register("t", Sent(record(), tuple(many)))


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
def test_what_a_mode_permits(mode: Mode, sent: Sent, refused: str | None) -> None:
    """What is there already is found in every mode."""
    held = Held()
    held.register("s", INT)
    held.mode("s", mode)
    if refused is None:
        held.register("s", sent)
        return
    with pytest.raises(NotPermittedError) as caught:
        held.register("s", sent)
    assert caught.value.message == f"Subject s in context  is not in {refused} mode".replace(
        "is not in read-only", "is in read-only"
    )


def test_importing_takes_ids_and_versions_as_they_come() -> None:
    """Gaps, several ids of one content, overwriting; what does not fit is not asked."""
    held = Held()
    held.mode("", Mode.IMPORT)
    assert held.at("s", Sent(INT, id=10, version=5)) == (10, 5)
    assert held.at("s", Sent(STRING, id=11)) == (11, 6)
    assert held.at("s", Sent(INT, id=12, version=2)) == (12, 2)
    assert held.at("s", Sent(INT, id=10, version=9)) == (10, 9)
    assert held.numbers("s") == [2, 5, 6, 9]
    assert held.at("s", Sent(LONG, id=13, version=5)) == (13, 5)
    assert held.at("t", Sent(INT, id=12)) == (12, 1)
    held.mode("", None)
    assert held.at("u", STRING) == (11, 1)
    assert held.at("u2", INT) == (10, 1)
    assert held.at("v", record()) == (14, 1)


def test_an_id_has_one_content() -> None:
    """As long as a version, deleted or not, has it; then it can come again."""
    held = Held()
    held.mode("", Mode.IMPORT)
    held.register("s", Sent(INT, id=10))
    held.delete_all("s")
    with pytest.raises(NotPermittedError) as caught:
        held.register(":.:t", Sent(LONG, id=10))
    assert caught.value.message == "Overwrite new schema with id 10 in context  is not permitted."
    held.delete_all("s", permanent=True)
    assert held.at("t", Sent(LONG, id=10)) == (10, 1)
    held.mode("", None)
    assert held.at("s", INT) == (11, 1)


def test_versions_end_where_clients_can_count_no_further() -> None:
    """What was imported with the last number leaves none for others; reading goes on."""
    held = Held()
    held.mode("", Mode.IMPORT)
    held.register("s", Sent(INT, id=1, version=INT_MAX))
    held.mode("", None)
    held.configure("", compatibility="NONE")
    with pytest.raises(NotPermittedError, match="left for another"):
        held.register("s", STRING)
    assert held.at("t", INT) == (1, 1)


def test_versions_may_be_imported_below_the_last_one() -> None:
    """They come with their numbers: none has to be left."""
    held = Held()
    held.mode("s", Mode.IMPORT)
    held.register("s", Sent(INT, id=1, version=INT_MAX))
    assert held.at("s", Sent(LONG, id=2, version=3)) == (2, 3)
    with pytest.raises(NotPermittedError, match="left for another"):
        held.register("s", Sent(STRING, id=3))


def test_an_id_at_the_end_does_not_end_the_counting() -> None:
    """It goes on where it was; what is near the end is used up first. No id is given twice."""
    held = Held()
    held.register("s", record("A"))
    held.register("s", record("A", "b="))
    held.mode("i", Mode.IMPORT)
    held.register("i", Sent(INT, id=INT_MAX))
    assert [held.at(f"t{n}", record(f"T{n}"))[0] for n in range(2)] == [3, 4]
    held.register("i", Sent(STRING, id=INT_MAX - 2))
    assert [held.at(f"u{n}", record(f"U{n}"))[0] for n in range(3)] == [INT_MAX - 1, 5, 6]
    held.delete_all("u2")
    held.delete_all("u2", permanent=True)
    assert held.at("v", record("V")) == (7, 1)
    assert held.at("i2", INT) == (INT_MAX, 1)
    held.mode(":.c:", Mode.IMPORT)
    held.register(":.c:s", Sent(INT, id=INT_MAX))
    held.mode(":.c:", None)
    assert held.at(":.c:t", LONG) == (1, 1)


def test_importing_does_not_replace_what_others_refer_to() -> None:
    """Deleted or not; nor does it make a schema refer to itself. The same content stays."""
    held = Held()
    held.register("base", record("B"))
    held.register("user", Sent(record("U", "b:B"), (to("base"),)))
    held.mode("base", Mode.IMPORT)
    with pytest.raises(ReferenceExistsError):
        held.register("base", Sent(record("Q"), id=777, version=1))
    held.delete_all("user")
    with pytest.raises(ReferenceExistsError):
        held.register("base", Sent(record("Q"), id=777, version=1))
    assert held.at("base", Sent(record("B"), id=777, version=1)) == (777, 1)
    held.delete_all("user", permanent=True)
    with pytest.raises(ReferenceExistsError):
        held.register("base", Sent(record("Q", "b:B"), (to("base"),), id=778, version=1))
    assert held.at("base", Sent(record("Q"), id=778, version=1)) == (778, 1)


def test_importing_may_refer_to_what_is_deleted() -> None:
    """The order in which a registry is copied should not matter."""
    held = Held()
    held.mode("", Mode.IMPORT)
    held.register("f", Sent(record("F"), id=1))
    held.delete_all("f")
    assert held.at("s", Sent(record("R", "a:F"), (to("f"),), id=2)) == (2, 1)


# --- what is wrong ---


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
def test_of_many_mistakes_the_first_is_told(
    subject: str, sent: Sent, error: type[RegistryRefusal]
) -> None:
    """Subject, schema, mode, empty schema, compatibility, version."""
    held = Held()
    held.register("s", INT)
    with pytest.raises(error):
        held.register(subject, sent)


def test_what_does_not_fit_is_told_to_the_end() -> None:
    """The messages are those of the check, in one list."""
    held = Held()
    held.register("s", INT)
    with pytest.raises(IncompatibleError) as caught:
        held.register("s", STRING)
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
    """Whoever deletes may start anew."""
    held = Held()
    held.register("s", INT)
    held.delete_all("s")
    assert held.at("s", STRING) == (2, 2)
