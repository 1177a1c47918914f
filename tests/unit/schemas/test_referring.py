import json
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.errors import SchemaError
from schemas.avro import parse
from schemas.entries import SchemaUse, StoredVersion
from schemas.referring import alone
from schemas.registry.limits import REFERENCES_MAX


def record(name: str, *types: str) -> str:
    """The text of a record with a field of each type."""
    fields = [{"name": f"f{n}", "type": kind} for n, kind in enumerate(types)]
    return json.dumps({"type": "record", "name": name, "fields": fields})


def to(name: str, subject: str, version: int = 1) -> dict[str, Any]:
    """A reference."""
    return {"name": name, "subject": subject, "version": version}


class Versions:
    """Versions by subject and number, and the requested ones."""

    def __init__(self, *versions: StoredVersion) -> None:
        self.versions = {one.use: one for one in versions}
        self.asked: list[SchemaUse] = []

    def find(self, use: SchemaUse) -> StoredVersion | None:
        """Find a version as a registry does."""
        self.asked.append(use)
        return self.versions.get(use)


def version(subject: str, text: str, *references: Any, number: int = 1) -> StoredVersion:
    """A version of a subject."""
    return StoredVersion(subject, number, 1, text, references=references)


def chain(length: int) -> list[StoredVersion]:
    """Records that contain each other, the last one an int."""
    last = version(f"s{length}", record(f"R{length}", "int"))
    links = [
        version(f"s{n}", record(f"R{n}", "int"), to(f"R{n + 1}", f"s{n + 1}"))
        for n in range(length)
    ]
    return [*links, last]


def test_references_are_resolved() -> None:
    """Transitively; each version is requested once, each type defined once."""
    kept = Versions(
        version("low", record("x.Low", "int")),
        version("left", record("x.Left", "Low"), to("x.Low", "low")),
        version("right", record("x.Right", "Low"), to("x.Low", "low")),
    )
    top = version(
        "top",
        record("Top", "x.Left", "x.Right", "x.Low"),
        *(to("x.Left", "left"), to("x.Right", "right")),
    )
    found = alone(top, kept.find)
    assert parse(found.text).names.keys() == {"x.Low", "x.Left", "x.Right", "Top"}
    assert [use.subject for use in kept.asked] == ["left", "low", "right"]
    assert found.references == top.references


def test_a_schema_without_references_is_unchanged() -> None:
    """Byte for byte, without a request."""
    kept, one = Versions(), version("s", ' {"type" : "int"}')
    assert alone(one, kept.find) is one
    assert not kept.asked


def test_references_are_in_the_context_of_the_referrer() -> None:
    """Unless they name another one."""
    kept = Versions(
        version(":.c:part", record("Part", "int")), version("other", record("Other", "int"))
    )
    text = record("Top", "Part", "Other")
    top = version(":.c:top", text, to("Part", "part"), to("Other", ":.:other"))
    assert parse(alone(top, kept.find).text).names.keys() == {"Part", "Other", "Top"}


def test_of_one_name_the_first_reference_counts() -> None:
    """As in Confluent's registry."""
    kept = Versions(version("a", record("P", "int")), version("a", record("P", "long"), number=2))
    top = version("top", record("Top", "P"), to("P", "a", 2), to("P", "a", 1))
    assert '"long"' in alone(top, kept.find).text
    assert kept.asked == [SchemaUse("a", 2)]


LOOP = Versions(
    version("a", record("A", "B"), to("B", "b", 3)),
    version("b", record("B", "A"), to("A", "a"), number=3),
    version("proto", "message M {}"),
    version("broken", '{"type":"record","name":"P"}'),
    version("lost", record("L", "int"), to("N", "nowhere", 4)),
    version("unnamed", record("U", "int"), {"name": "N", "subject": "s"}),
)
LOOP.versions[SchemaUse("proto", 1)] = StoredVersion("proto", 1, 9, "message M {}", kind="PROTOBUF")


@pytest.mark.parametrize(
    ("reference", "place", "message"),
    [
        (to("P", "none", 7), "here", "the schema refers to none version 7, which the registry"),
        (to("L", "lost"), "here", "refers through lost version 1 to nowhere version 4, which"),
        (to("A", "a"), "here", "refers to itself: a version 1 -> b version 3 -> a version 1"),
        (to("P", "proto"), "here, through proto version 1", "is PROTOBUF, only Avro"),
        (to("P", "broken"), "here, through broken version 1, /", 'without "fields"'),
        (to("P", "unnamed"), "here, through unnamed version 1", "without name, subject and"),
        ({"name": "P"}, "here", "without name, subject and version"),
        ("P", "here", "without name, subject and version"),
    ],
)
def test_an_unresolvable_reference_is_named(reference: Any, place: str, message: str) -> None:
    """By subject and version, and the schema that refers to it."""
    with pytest.raises(SchemaError) as caught:
        alone(version("top", record("Top", "P"), reference), LOOP.find, "here")
    assert message in caught.value.message
    assert caught.value.place == place


def test_a_type_that_no_reference_defines_is_named() -> None:
    """With the subject and version of the schema that uses it."""
    top = version("top", record("Top", "P"), to("P", "a"))
    kept = Versions(version("a", record("Q", "int")))
    with pytest.raises(SchemaError, match="unknown type 'P'") as caught:
        alone(top, kept.find)
    assert caught.value.place == "subject top, version 1, /fields/f0/type"


def _many(count: int) -> tuple[StoredVersion, Versions]:
    parts = [version(f"s{n}", record(f"R{n}", "int")) for n in range(count)]
    references = (to(f"R{n}", f"s{n}") for n in range(count))
    return version("top", record("Top", "R0"), *references), Versions(*parts)


def _deep(count: int) -> tuple[StoredVersion, Versions]:
    first, *others = chain(count)
    return first, Versions(*others)


@pytest.mark.parametrize(
    ("made", "bound", "message"),
    [
        (_many, REFERENCES_MAX, "refers to more than 100 others, the last one is s100 version 1"),
        (_deep, REFERENCES_MAX, "refers to more than 100 others, the last one is s101 version 1"),
    ],
)
def test_the_number_and_depth_of_references_are_bounded(
    made: Callable[[int], tuple[StoredVersion, Versions]], bound: int, message: str
) -> None:
    """In breadth and in depth."""
    one, kept = made(bound)
    assert alone(one, kept.find).text
    one, kept = made(bound + 1)
    with pytest.raises(SchemaError, match=message):
        alone(one, kept.find)
    assert len(kept.asked) == bound


def test_too_deeply_nested_types_are_refused() -> None:
    """Each schema is shallow; the one that exceeds the depth is named."""
    links = [
        version(f"s{n}", record(f"R{n}", f"R{n + 1}"), to(f"R{n + 1}", f"s{n + 1}"))
        for n in range(70)
    ]
    kept = Versions(*links, version("s70", record("R70", "int")))
    assert alone(links[7], kept.find).text
    with pytest.raises(SchemaError, match="nested more than 64 deep, with those of the") as caught:
        alone(links[0], kept.find, "here")
    assert caught.value.place == "here, through s6 version 1, /"


def test_a_type_that_avro_cannot_name_is_reported_with_its_place() -> None:
    """A type without a namespace, inside a namespace that has one of its name."""
    kept = Versions(
        version("order", record("Order", "int")),
        version("item", record("shop.Item", "Order"), to("Order", "order")),
        version("own", record("shop.Order", "int")),
    )
    references = (to("shop.Item", "item"), to("shop.Order", "own"))
    top = version("top", record("T", "Order", "shop.Order", "shop.Item"), *references)
    with pytest.raises(SchemaError, match=r"mean both shop\.Order and Order") as caught:
        alone(top, kept.find, "here")
    assert caught.value.place == "here, /"
