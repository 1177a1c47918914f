import json
from typing import Any

import pytest
from hypothesis import given

from schemas.avro import parse
from schemas.json_value import Json, JsonObject
from schemas.registry.java_text import canonical_text
from schemas.registry.refused import BadSchemaError
from schemas.registry.tags import ATTRIBUTE, FIELD, RECORD, Entity, tags_in, with_tags, with_tags_of
from tests.unit.schemas.strategies import schema_values


def field(name: str, kind: Json = "int", **more: Json) -> JsonObject:
    """A field."""
    return {"name": name, "type": kind, **more}


INNER: JsonObject = {
    "type": "record",
    "name": "Inner",
    "fields": [{**field("b"), ATTRIBUTE: ["old"]}],
}
OTHER: JsonObject = {"type": "record", "name": "Other", "namespace": "m", "fields": []}
CAR: JsonObject = {
    "type": "record",
    "name": "Car",
    "namespace": "n",
    "fields": [
        field("one", ["null", {"type": "array", "items": INNER}]),
        field("two", {"type": "map", "values": OTHER}),
        field("again", "Inner"),
    ],
}
TEXT = canonical_text(CAR)


@pytest.mark.parametrize(
    ("kind", "path", "full"),
    [
        (RECORD, "n.Car", "n.Car"),
        (RECORD, "Car", "n.Car"),
        (RECORD, "n.Inner", "n.Inner"),
        (RECORD, "Inner", "n.Inner"),
        (RECORD, "m.Other", "m.Other"),
        (FIELD, "n.Car.two", "n.Car.two"),
        (FIELD, "Inner.b", "n.Inner.b"),
    ],
)
def test_tags_are_added_to_the_named_place(kind: str, path: str, full: str) -> None:
    """At any depth; the namespace may be omitted; removing them leaves no attribute."""
    change = ((Entity(kind, path), ("x", "y", "x")),)
    made = with_tags(TEXT, change)
    found = dict(tags_in(json.loads(made)))
    assert found[Entity(kind, full)][-2:] == ("x", "y")
    assert with_tags(made, (), change) == TEXT
    assert with_tags(made, change) == made


@pytest.mark.parametrize(
    ("kind", "path"),
    [(RECORD, ""), (RECORD, "m.Car"), (RECORD, "n.Car.two"), (FIELD, "n.Car"), (FIELD, "two")],
)
def test_an_unknown_path_is_reported(kind: str, path: str) -> None:
    """As it was given."""
    with pytest.raises(BadSchemaError, match=f"No matching path '{path}' found"):
        with_tags(TEXT, ((Entity(kind, path), ("x",)),))


def test_tags_are_listed_in_the_order_of_the_text() -> None:
    """Each place with all of its tags; an attribute that is no list has none."""
    tags = ((Entity(RECORD, "n.Car"), ("a",)), (Entity(FIELD, "n.Car.two"), ("b",)))
    assert tags_in(json.loads(with_tags(TEXT, tags))) == (
        (Entity(RECORD, "n.Car"), ("a",)),
        (Entity(FIELD, "n.Inner.b"), ("old",)),
        (Entity(FIELD, "n.Car.two"), ("b",)),
    )
    assert tags_in({**OTHER, ATTRIBUTE: "x"}) == ()
    assert tags_in({**OTHER, ATTRIBUTE: [1, "x", "x"]}) == (
        (Entity(RECORD, "m.Other"), ("1", "x")),
    )


def test_tags_are_copied_where_both_have_the_place() -> None:
    """The others are omitted."""
    bare = canonical_text({**INNER, "namespace": "n", "fields": [field("b"), field("c")]})
    made = with_tags_of(bare, tags_in(CAR))
    assert tags_in(json.loads(made)) == ((Entity(FIELD, "n.Inner.b"), ("old",)),)
    assert with_tags_of('"int"', tags_in(CAR)) == '"int"'


@given(schema_values())
def test_a_tag_can_be_added_to_every_listed_place(value: object) -> None:
    """In any schema; the rest of it is unchanged."""
    text = canonical_text(parse(json.dumps(value)).value)
    places = [entity for entity, _ in tags_in(_tagged_everywhere(json.loads(text)))]
    for entity in places:
        change = ((entity, ("new",)),)
        made = with_tags(text, change)
        assert (entity, ("new",)) in tags_in(json.loads(made))
        assert with_tags(made, (), change) == text


def _tagged_everywhere(value: Any) -> Any:
    """A schema's value with a tag on each object in it: only records and fields count."""
    if isinstance(value, dict):
        return {key: _tagged_everywhere(one) for key, one in value.items()} | {ATTRIBUTE: ["t"]}
    return [_tagged_everywhere(one) for one in value] if isinstance(value, list) else value
