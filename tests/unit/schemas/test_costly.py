"""Texts that would take minutes, or for ever, where something grows with the square of a size."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.errors import SchemaError
from schemas.avro import parse
from schemas.registry.limits import BODY_BYTES_MAX
from schemas.registry.lookup import with_metadata
from schemas.registry.metadata import Metadata
from schemas.registry.prepare import Sent
from schemas.registry.refused import TooLargeError
from schemas.registry.tags import FIELD, Entity, tags_in, with_tags
from schemas.types import INT_MAX, FixedType
from tests.unit.schemas.registry.making import INT, NAME, Held, to

WITHIN_S = 20.0
"""Of this thread alone; a tenth of it is enough, and without bounds each takes several times it."""


@pytest.fixture(autouse=True)
def _soon() -> Iterator[None]:
    began = time.thread_time()
    yield
    assert time.thread_time() - began < WITHIN_S


def record(*fields: dict[str, Any]) -> str:
    """The text of a record."""
    return json.dumps({"type": "record", "name": "R", "fields": fields}, separators=(",", ":"))


def fixed(number: int) -> dict[str, Any]:
    """A small named type."""
    return {"type": "fixed", "name": f"F{number}", "size": 1}


@pytest.mark.parametrize("precision", [10**12, 10**4000])
@pytest.mark.parametrize("size", [1, INT_MAX])
def test_a_decimal_of_digits_without_number_is_none(size: int, precision: int) -> None:
    """Nobody computes how large its numbers could become."""
    value = {**fixed(1), "size": size, "logicalType": "decimal", "precision": precision}
    assert parse(json.dumps(value)).root == FixedType("F1", (), size)


def test_many_keys_of_which_one_stands_twice() -> None:
    """It is found at once, wherever it stands."""
    keys = ",".join(f'"k{number}":1' for number in range(80_000))
    text = f'{{"type":"int",{keys},"z":1,"z":1}}'
    assert len(text) < BODY_BYTES_MAX
    with pytest.raises(SchemaError, match="the key 'z' stands twice"):
        parse(text)


def test_many_types_that_another_schema_defines_too() -> None:
    """What that one says is read once."""
    types = [fixed(number) for number in range(9_000)]
    other = parse(json.dumps(types))
    text = record(*({"name": f"f{number}", "type": one} for number, one in enumerate(types)))
    assert len(text) < BODY_BYTES_MAX
    assert '"type":"F8999"' in parse(text, (other,)).text


def test_many_large_schemas_that_one_refers_to() -> None:
    """Each would be read with all types of those before it."""
    held = Held()
    references = []
    for number in range(30):
        types = [{**fixed(one), "namespace": f"n{number}"} for one in range(1_000)]
        held.register(f"s{number}", json.dumps(types))
        references.append(to(f"s{number}", name=f"r{number}"))
    held.register("few", Sent('["null","n0.F1"]', tuple(references[:15])))
    with pytest.raises(TooLargeError, match="refers to have at most 1000000 characters"):
        held.register("many", Sent('["null","n0.F1"]', tuple(references)))


def test_a_long_default_of_a_long_union() -> None:
    """Each value with each branch is more than is compared."""
    branches = [*map(fixed, range(8_000)), "int"]
    field = {"name": "f", "type": {"type": "array", "items": branches}}
    with pytest.raises(SchemaError, match="more than 1000000 values and types"):
        parse(record({**field, "default": [1] * 100_000}))
    assert parse(record({**field, "default": [1] * 100})).full_name == "R"


def test_a_long_default_of_a_long_enum() -> None:
    """Symbols are looked up, not looked through."""
    symbols = [f"s{number}" for number in range(60_000)]
    enum = {"type": "enum", "name": "E", "symbols": symbols}
    field = {"name": "f", "type": {"type": "array", "items": enum}}
    text = record({**field, "default": [symbols[-1]] * 40_000})
    assert len(text) < BODY_BYTES_MAX
    assert parse(text).full_name == "R"
    with pytest.raises(SchemaError, match="is not a default for symbol of E"):
        parse(record({**field, "default": [[]]}))


def test_tags_for_many_fields() -> None:
    """Each is found by its path; those of one place are put together."""
    names = [f"f{number}" for number in range(20_000)]
    text = record(*({"name": name, "type": "int"} for name in names))
    change = tuple((Entity(FIELD, f"R.{name}"), ("x",)) for name in reversed(names))
    made = with_tags(text, change)
    assert tags_in(json.loads(made)) == tuple(reversed(change))
    assert not tags_in(json.loads(with_tags(made, (), change)))


def test_many_tags_of_one_field() -> None:
    """Told one by one, and taken away so."""
    words = [f"w{number}" for number in range(20_000)]
    change = tuple((Entity(FIELD, "R.f"), (word,)) for word in words)
    made = with_tags(record({"name": "f", "type": "int"}), change)
    assert tags_in(json.loads(made)) == ((Entity(FIELD, "R.f"), tuple(words)),)
    assert not tags_in(json.loads(with_tags(made, (), change)))


def test_many_properties_that_are_asked_for_again_and_again() -> None:
    """A version that has all of them is found as soon as one that has one."""
    held = Held()
    metadata = Metadata((), tuple((f"p{number:05}", "") for number in range(30_000)))
    held.register("s", Sent(INT, metadata=metadata))
    pairs = [("p00000", "")] * 20_000
    assert with_metadata(held.state, NAME("s"), pairs, deleted=False).version.number == 1
