"""Schemas that an earlier version kept in a form of its own."""

import json

from brokers.versioned_store import Create
from pipeline.ids import ZnodePath
from schemas.compatibility import Level
from schemas.registry.earlier import take_over
from schemas.registry.registry import Registry
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.schemas.registry.making import INT, NAME, STRING

ROOT, EARLIER = ZnodePath("/registry"), ZnodePath("/schemas")


def kept() -> MemoryStore:
    """Two schemas, two subjects, and levels, as they lay there."""
    store = MemoryStore(MemoryTree())
    records: dict[str, dict[str, object]] = {
        "counter": {"next_id": 3},
        "ids/0000000001": {"schema": STRING, "key": "a"},
        "ids/0000000002": {"schema": INT, "key": "b"},
        "contents/a": {"id": 1},
        "contents/b": {"id": 2},
        "subjects/cars%2Fvalue": {"versions": [{"version": 1, "id": 1}, {"version": 2, "id": 2}]},
        "subjects/t": {"versions": [{"version": 1, "id": 2}]},
        "level": {"level": "NONE"},
        "levels/t": {"level": "BACKWARD"},
    }
    for path, record in records.items():
        store.make_parents(f"{EARLIER}/{path}".rpartition("/")[0])
        value = json.dumps({"format": 1, **record}).encode()
        store.apply((Create(f"{EARLIER}/{path}", value),))
    return store


def test_ids_versions_and_levels_stay_what_they_were() -> None:
    """What was taken over is gone there, so that it happens once."""
    store = kept()
    registry = Registry(store, ROOT)
    try:
        assert take_over(store, EARLIER, registry, 5) == 3
        state = registry.state()
        found = {str(n): [(v.number, v.id) for v in vs] for n, vs in state.subjects.items()}
        assert found == {"cars/value": [(1, 1), (2, 2)], "t": [(1, 2)]}
        assert [state.content(v.guid).text for v in state.versions(NAME("cars/value"))] == [
            STRING,
            INT,
        ]
        levels = {str(name): config.level for name, config in state.configs.items()}
        assert levels == {"": Level.NONE, "t": Level.BACKWARD}
        assert state.next_id(NAME("t").context) == 3
        assert store.get(EARLIER) is None
        assert take_over(store, EARLIER, registry, 6) == 0
        assert registry.state() == state
    finally:
        registry.close()


def test_who_was_stopped_in_between_does_it_again() -> None:
    """Nothing is there twice."""
    store = kept()
    registry = Registry(store, ROOT)
    try:
        take_over(store, EARLIER, registry, 5)
        state = registry.state()
        again = kept()
        for path in ("subjects", "levels", "ids"):
            store.make_parents(f"{EARLIER}/{path}")
            for node in again.children(f"{EARLIER}/{path}"):
                found = again.get(f"{EARLIER}/{path}/{node}")
                assert found is not None
                store.apply((Create(f"{EARLIER}/{path}/{node}", found.value),))
        take_over(store, EARLIER, registry, 5)
        assert registry.state() == state
    finally:
        registry.close()
