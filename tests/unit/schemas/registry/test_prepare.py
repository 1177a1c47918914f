import json
from typing import Any

import pytest

from schemas.avro import AvroSchema, parse
from schemas.registry import content
from schemas.registry.java_text import canonical_text
from schemas.registry.prepare import Sent, prepared, used_by, whole_text
from schemas.registry.result_cache import ResultCache
from schemas.registry.state import State
from tests.unit.schemas.registry.making import NAME, RegistryValue, record, to


def test_a_chain_of_references_costs_its_length() -> None:
    """Each schema uses all before it; walking every path through them would never end."""
    registry = RegistryValue()
    for n in range(60):
        before = tuple(to(f"f{m}", name=f"f{m}") for m in range(n))
        fields = [f"a{m}:F{m}" for m in range(n)][-2:]
        registry.register(f"f{n}", Sent(record(f"F{n}", *fields), before))
    assert len(used_by(registry.state, NAME("s"), (to("f59"),), deleted=False)) == 60


def test_schemas_are_equal_when_they_were_read_twice() -> None:
    """A referrer may have been read before the schema itself was read again."""
    low, again = (parse.__wrapped__(record("L")) for _ in range(2))
    high = parse(record("H", "a:L"), (low,))
    assert low == again
    assert parse(record("T", "a:L", "b:H"), (again, high)).names.keys() == {"L", "H", "T"}


def test_a_cycle_of_references_ends() -> None:
    """Importing can make one."""
    registry = RegistryValue()
    registry.register("a", record("A"))
    registry.register("b", Sent(record("B", "x:A"), (to("a", name="a"),)))
    assert (
        len(
            used_by(registry.state, NAME("b"), (to("a", name="a"), to("b", name="b")), deleted=True)
        )
        == 2
    )


@pytest.mark.parametrize("normal", [False, True])
def test_a_schema_is_compared_as_a_whole(normal: bool) -> None:  # noqa: FBT001 - of the table
    """With all references inlined."""
    registry = RegistryValue()
    registry.register("f", record("F"))
    one = prepared(
        registry.state, NAME("s"), Sent(record("R", "a:F"), (to("f", -1),)), normal=normal
    )
    assert one.content.references == (to("f"),)
    inside = record("R", "a").replace('"int"', record("F"))
    other = prepared(State(), NAME("s"), Sent(inside), normal=normal)
    assert one.content.text != other.content.text
    assert whole_text(one) == whole_text(other)


def test_many_large_versions_are_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All cached parsed schemas are evicted: for another schema only the latest is read."""
    registry = RegistryValue()
    registry.configure("", compatibility="NONE")
    for n in range(20):
        registry.register("s", record("R", f"a{n}"))
    registry.configure("", compatibility="FULL")
    read: list[str] = []

    def counted(text: str, used: tuple[AvroSchema, ...], *, normal: bool) -> Any:
        read.append(text)
        return made_to_keep(text, used, normal=normal)

    made_to_keep = content._made_to_keep
    monkeypatch.setattr(content, "_made_to_keep", counted)
    monkeypatch.setattr(content, "_KEPT", ResultCache(0))
    new = record("R", "a19", "b=")
    assert registry.at("s", new) == (21, 21)
    assert set(read) == {new, canonical_text(json.loads(record("R", "a19")))}
    assert registry.at("s", record("R", "a3", namespace="")) == (4, 4)
