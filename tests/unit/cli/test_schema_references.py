"""`--reference` of `medusa schema register`, `check` and `diff`, with an external registry."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli.commands.schema.references import parse_reference
from pipeline.operations.schemas.references import TypeReference
from schemas.entries import SchemaUse
from tests.unit.schemas.fake_registry import FakeRegistry, serving

Caller = Callable[..., Any]

WHEEL = '{"type":"record","name":"parts.Wheel","fields":[{"name":"inch","type":"int"}]}'
WIDER = WHEEL.replace('"int"', '"long"')
CART = '{"type":"record","name":"Cart","fields":[{"name":"front","type":"parts.Wheel"}]}'
SENT = {"name": "parts.Wheel", "subject": "wheels", "version": 2}


@pytest.fixture
def fake() -> FakeRegistry:
    """A registry with two versions of a type, and schemas that cannot be referenced."""
    made = FakeRegistry()
    made.add("wheels", WHEEL)
    made.add("wheels", WIDER)
    made.add("lists", f'{{"type":"array","items":{WHEEL}}}')
    made.add("numbers", '"int"')
    made.add("others", "message M {}", schemaType="PROTOBUF")
    return made


@pytest.fixture
def schema(medusa: Caller, fake: FakeRegistry) -> Iterator[Caller]:
    """Caller of `medusa schema … --registry URL` in a folder with a schema that uses the type."""
    Path("cart.avsc").write_text(CART, encoding="utf-8")
    with serving(fake) as url:

        def call(*arguments: str, output: str = "json") -> Any:
            return medusa("schema", *arguments, "--registry", url, "-o", output)

        yield call


def sent(fake: FakeRegistry) -> list[tuple[tuple[str, ...], Any]]:
    """Sent requests: path and body."""
    return [(one.path, one.body) for one in fake.requests if one.method == "POST"]


def test_a_schema_is_registered_with_its_references(schema: Caller, fake: FakeRegistry) -> None:
    """Unchanged from the file; `latest` is sent as the number of the version."""
    latest = ("register", "carts", "cart.avsc", "--reference", "wheels:latest")
    assert schema(*latest, "--dry-run").data["fits"]
    assert SchemaUse("carts", 1) not in fake.versions
    done = schema(*latest).data
    assert (done["changed"], done["references"]) == (True, [SENT])
    assert {path[0] for path, _ in sent(fake)} == {"subjects", "compatibility"}
    assert all(body == {"schema": CART, "references": [SENT]} for _, body in sent(fake))
    assert fake.versions[SchemaUse("carts", 1)]["references"] == [SENT]
    named = ("register", "carts", "cart.avsc", "--reference", "parts.Wheel=wheels:2")
    assert schema(*named, output="table").out == (
        f"carts: was registered already with id {done['id']}\n"
        "  parts.Wheel is that of wheels version 2\n"
    )


def test_a_file_is_checked_with_its_references(schema: Caller, fake: FakeRegistry) -> None:
    """Alone, or against a subject; a type within the file of another type may be used too."""
    checked = schema("check", "cart.avsc", "--reference", "wheels:1", output="table")
    assert checked.out == (
        "cart.avsc is an Avro schema\n  parts.Wheel is that of wheels version 1\n"
    )
    inside = schema("check", "cart.avsc", "--reference", "parts.Wheel=lists:1").data
    assert (inside["subject"], inside["references"][0]["subject"]) == (None, "lists")
    assert sent(fake) == []
    assert schema("check", "cart.avsc", "--reference", "wheels:1", "--subject", "carts").code == 0
    assert [path[0] for path, _ in sent(fake)] == ["subjects", "compatibility"]


def test_incompatibilities_in_referenced_types_are_reported(
    schema: Caller, fake: FakeRegistry
) -> None:
    """With the path within the referenced type."""
    fake.add("carts", CART, references=[SENT])
    fake.refused = ("no",)
    for verb in (("register", "carts", "cart.avsc"), ("check", "cart.avsc", "--subject", "carts")):
        refused = schema(*verb, "--reference", "wheels:1")
        assert refused.code == 65
        assert "/fields/front/type/fields/inch/type" in refused.err
    assert fake.versions.keys() & {SchemaUse("carts", 2)} == set()


def test_a_file_is_compared_with_its_references(schema: Caller, fake: FakeRegistry) -> None:
    """Changes in a type of another subject are included."""
    fake.add("carts", CART, references=[{**SENT, "version": 1}])
    (change,) = schema("diff", "carts", "cart.avsc", "--reference", "wheels:2").data["changes"]
    assert (change["path"], change["kind"]) == (
        "/fields/front/type/fields/inch/type",
        "type-widened",
    )


def test_referenced_subjects_are_in_the_context_of_the_schema(
    schema: Caller, fake: FakeRegistry
) -> None:
    """Unless a context is given; the subject is sent as it was typed."""
    fake.add(":.c:wheels", WHEEL)
    for subject in ("wheels", ":.c:wheels"):
        call = ("register", ":.c:carts", "cart.avsc", "--reference", f"{subject}:latest")
        assert schema(*call, "--dry-run").data["references"] == [
            {"name": "parts.Wheel", "subject": subject, "version": 1}
        ]


@pytest.mark.parametrize(
    ("references", "code", "message"),
    [
        ((), 65, "cart.avsc, /fields/front/type: unknown type 'parts.Wheel'"),
        ((), 65, "name that: `--reference SUBJECT:VERSION`"),
        (("wheels",), 64, "'wheels' is not [NAME=]SUBJECT:VERSION"),
        (("wheels:9",), 65, "subject wheels: the registry does not have version 9 of it"),
        (("wheel:1",), 65, "it has wheels"),
        (("Wheel=wheels:1",), 65, "wheels, version 1: it does not define Wheel"),
        (("lists:1",), 65, "(array)\n  hint: say which of its types"),
        (("numbers:1",), 65, "no type that could be used"),
        (("others:1",), 65, "only Avro can be read"),
        (("wheels:1", "parts.Wheel=lists:1"), 64, "wanted from wheels version 1 and lists"),
    ],
)
def test_mistakes_are_errors(
    schema: Caller, fake: FakeRegistry, references: tuple[str, ...], code: int, message: str
) -> None:
    """With the file, subject or option, and a hint; no request is sent."""
    options = [word for one in references for word in ("--reference", one)]
    for verb in (("register", "s", "cart.avsc"), ("check", "cart.avsc")):
        called = schema(*verb, *options)
        assert (called.code, message in called.err) == (code, True), called.err
    assert sent(fake) == []


def test_mistakes_in_a_file_with_references_name_it(schema: Caller) -> None:
    """With the path within it."""
    Path("bad.avsc").write_text(CART.replace("Wheel", "Whel"), encoding="utf-8")
    called = schema("check", "bad.avsc", "--reference", "wheels:1")
    assert called.code == 65
    assert "bad.avsc, /fields/front/type: unknown type 'parts.Whel'" in called.err
    assert "types defined before this: Cart, parts.Wheel" in called.err


def test_references_are_given_for_files_only(schema: Caller) -> None:
    """Versions in the registry contain their references."""
    called = schema("diff", "wheels", "--reference", "wheels:1")
    assert (called.code, "name FILE too" in called.err) == (64, True)


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("a.B=cars:1", TypeReference("a.B", "cars", 1)),
        ("cars:latest", TypeReference("", "cars", "latest")),
        ("B=:.ctx:cars:12", TypeReference("B", ":.ctx:cars", 12)),
        ("B=a=b:1", TypeReference("B", "a=b", 1)),
        *((word, None) for word in ("", "cars", "cars:", ":1", "=cars:1", "B=:1", "B=")),
        *((f"cars:{word}", None) for word in ("0", "-1", "newest", "1.0", "9" * 5000, "²")),
    ],
)
def test_an_option_is_split_at_its_first_equals_sign_and_its_last_colon(
    word: str, wanted: TypeReference | None
) -> None:
    """Names of types contain no `=`; subjects may contain both characters."""
    assert parse_reference(word) == wanted
