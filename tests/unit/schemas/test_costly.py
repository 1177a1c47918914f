"""Inputs of quadratic or exponential cost, which would take minutes or never end."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pipeline.errors import SchemaError
from schemas.avro import parse
from schemas.registry.content import Content, Reference, guid_of
from schemas.registry.limits import BODY_BYTES_MAX, REFERENCES_MAX
from schemas.registry.lookup import version, with_metadata
from schemas.registry.metadata import Metadata, metadata_of
from schemas.registry.names import DEFAULT
from schemas.registry.prepare import Sent, prepared, same
from schemas.registry.refused import IncompatibleError, NoSubjectError, TooLargeError
from schemas.registry.register import register
from schemas.registry.state import ContentPut, State, SubjectPut, Version, Versions
from schemas.registry.tags import FIELD, Entity, tags_in, with_tags
from schemas.types import INT_MAX, FixedType
from tests.unit.schemas.registry import making
from tests.unit.schemas.registry.making import INT, NAME, RegistryValue, to

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
def test_a_decimal_with_too_many_digits_is_none(size: int, precision: int) -> None:
    """The range of its numbers is not computed."""
    value = {**fixed(1), "size": size, "logicalType": "decimal", "precision": precision}
    assert parse(json.dumps(value)).root == FixedType("F1", (), size)


def test_a_duplicate_among_many_keys_is_found() -> None:
    """Quickly, in any place."""
    keys = ",".join(f'"k{number}":1' for number in range(80_000))
    text = f'{{"type":"int",{keys},"z":1,"z":1}}'
    assert len(text) < BODY_BYTES_MAX
    with pytest.raises(SchemaError, match="the key 'z' stands twice"):
        parse(text)


def test_many_types_that_another_schema_defines_too() -> None:
    """The other schema is read once."""
    types = [fixed(number) for number in range(9_000)]
    other = parse(json.dumps(types))
    text = record(*({"name": f"f{number}", "type": one} for number, one in enumerate(types)))
    assert len(text) < BODY_BYTES_MAX
    assert '"type":"F8999"' in parse(text, (other,)).text


def test_references_to_many_large_schemas() -> None:
    """Each would be read with all types of those before it."""
    registry = RegistryValue()
    references = []
    for number in range(30):
        types = [{**fixed(one), "namespace": f"n{number}"} for one in range(1_000)]
        registry.register(f"s{number}", json.dumps(types))
        references.append(to(f"s{number}", name=f"r{number}"))
    registry.register("few", Sent('["null","n0.F1"]', tuple(references[:15])))
    with pytest.raises(TooLargeError, match="refers to have at most 1000000 characters"):
        registry.register("many", Sent('["null","n0.F1"]', tuple(references)))


def test_a_long_default_of_a_long_union() -> None:
    """Each value with each branch exceeds the limit of comparisons."""
    branches = [*map(fixed, range(8_000)), "int"]
    field = {"name": "f", "type": {"type": "array", "items": branches}}
    with pytest.raises(SchemaError, match="more than 1000000 values and types"):
        parse(record({**field, "default": [1] * 100_000}))
    assert parse(record({**field, "default": [1] * 10})).full_name == "R"


def test_a_long_default_of_a_long_enum() -> None:
    """Symbols are looked up in a set."""
    symbols = [f"s{number}" for number in range(60_000)]
    enum = {"type": "enum", "name": "E", "symbols": symbols}
    field = {"name": "f", "type": {"type": "array", "items": enum}}
    text = record({**field, "default": [symbols[-1]] * 40_000})
    assert len(text) < BODY_BYTES_MAX
    assert parse(text).full_name == "R"
    with pytest.raises(SchemaError, match="is not a default for symbol of E"):
        parse(record({**field, "default": [[]]}))


def test_tags_for_many_fields() -> None:
    """Each is found by its path; those of one place are grouped."""
    names = [f"f{number}" for number in range(20_000)]
    text = record(*({"name": name, "type": "int"} for name in names))
    change = tuple((Entity(FIELD, f"R.{name}"), ("x",)) for name in reversed(names))
    made = with_tags(text, change)
    assert tags_in(json.loads(made)) == tuple(reversed(change))
    assert not tags_in(json.loads(with_tags(made, (), change)))


def test_many_tags_of_one_field() -> None:
    """Added one by one, and removed so."""
    words = [f"w{number}" for number in range(20_000)]
    change = tuple((Entity(FIELD, "R.f"), (word,)) for word in words)
    made = with_tags(record({"name": "f", "type": "int"}), change)
    assert tags_in(json.loads(made)) == ((Entity(FIELD, "R.f"), tuple(words)),)
    assert not tags_in(json.loads(with_tags(made, (), change)))


def many(number: int, *references: Reference) -> tuple[State, Versions]:
    """A registry with a subject of small versions, and these; all but the first 100 refer."""
    state, versions = State(), []
    for n in range(1, number + 1):
        content = Content(making.record(f"R{n}"), references if n > REFERENCES_MAX else ())
        guid = guid_of(content)
        state = state.after((ContentPut(guid, content, ((DEFAULT, n),)),))
        versions.append(Version(n, n, guid, 1))
    return state.after((SubjectPut(NAME("s"), tuple(versions)),)), tuple(versions)


def test_many_properties_compared_with_many_versions() -> None:
    """The request is examined once, not once for each version."""
    state, _ = many(1_000)
    metadata = metadata_of({"properties": {f"p{number}": "" for number in range(40_000)}})
    sent = Sent(making.record("R1000"), metadata=metadata)
    assert register(state, NAME("s"), sent, normal=False, now_ms=1).version.number == 1_001


def test_a_long_text_compared_with_many_versions() -> None:
    """Its digest is computed once."""
    state, versions = many(1)
    sent = Sent(record(*({"name": f"f{n}", "type": "int"} for n in range(25_000))))
    one = prepared(state, NAME("s"), sent, normal=False)
    assert not any(same(state, NAME("s"), one, versions[0]) for _ in range(20_000))


def test_many_versions_that_refer_to_many() -> None:
    """Each is read with its references once, and found without a scan of the others."""
    references = [Reference(f"n{n}", "s", n) for n in range(1, REFERENCES_MAX)]
    state, versions = many(1_000, *references)
    sent = Sent(INT, tuple(references))
    for _ in range(4):
        with pytest.raises(IncompatibleError):
            register(state, NAME("s"), sent, normal=False, now_ms=1)
    last = replace(versions[-1], deleted=True)
    for _ in range(50):
        state = state.after((SubjectPut(NAME("s"), (*versions[:-1], last)),))
        state = state.after((SubjectPut(NAME("s"), versions),))
    assert len(state.referrers) == REFERENCES_MAX - 1


def test_a_missing_name_among_many_subjects() -> None:
    """The response needs no scan of them."""
    registry = RegistryValue()
    one = registry.register(":.c:there", INT).version
    state = registry.state.after(
        SubjectPut(NAME(f"s{number}"), (replace(one, id=number),)) for number in range(30_000)
    )
    for number in range(20_000):
        with pytest.raises(NoSubjectError):
            version(state, NAME(f"t{number}"), 1)
    assert version(state, NAME("there"), 1).name == NAME(":.c:there")


def test_many_properties_requested_repeatedly() -> None:
    """A version with all of them is found as fast as one with a single one."""
    registry = RegistryValue()
    metadata = Metadata((), tuple((f"p{number:05}", "") for number in range(30_000)))
    registry.register("s", Sent(INT, metadata=metadata))
    pairs = [("p00000", "")] * 20_000
    assert with_metadata(registry.state, NAME("s"), pairs, deleted=False).version.number == 1
