"""What the registry promises, held against the in-memory twin and real ZooKeeper."""

import json
import threading

import pytest

from brokers.versioned_store import VersionedStore
from pipeline.ids import ZnodePath
from schemas.compatibility import Level
from schemas.records import IncompatibleSchemaError
from schemas.registry import Registry
from schemas.store import ZnodeSchemaStore
from tests.conformance.conftest import OpenSession


def _registry(store: VersionedStore) -> Registry:
    return Registry(ZnodeSchemaStore(store, ZnodePath("/schemas")))


def _text(field: str) -> str:
    """A record whose field has a default, so that every such record fits every other."""
    fields = [{"name": field, "type": "int", "default": 0}]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def test_what_one_session_registers_another_finds(open_session: OpenSession) -> None:
    """Ids, versions, texts, subjects and levels are seen by every session."""
    one, other = _registry(open_session()), _registry(open_session())
    first = one.register("some/subject", _text("a"))
    second = other.register("some/subject", _text("b"))
    assert (first.id, first.version, second.id, second.version) == (1, 1, 2, 2)
    assert one.versions("some/subject") == (first, second)
    assert one.lookup("some/subject", _text("b")) == second
    assert other.subjects() == ("some/subject",)
    with pytest.raises(IncompatibleSchemaError):
        other.register("some/subject", '"string"')
    one.set_level("some/subject", "NONE")
    assert other.level("some/subject") is Level.NONE
    assert other.register("some/subject", '"string"').version == 3
    other.set_level("some/subject", None)
    assert one.own_level("some/subject") is None


def test_racing_writers_never_share_an_id_or_a_version(open_session: OpenSession) -> None:
    """Eight sessions register the same and other contents under the same subjects at once."""
    registries = [_registry(open_session()) for _ in range(8)]
    start = threading.Barrier(8)
    failures: list[BaseException] = []
    contents = 6

    def write(number: int) -> None:
        registry = registries[number]
        start.wait(10)
        try:
            for step in range(contents):
                content = (step + number) % contents
                registry.register(f"s{step % 2}", _text(f"f{content}"))
        except BaseException as error:  # noqa: BLE001 - reported by the test below
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    registry = _registry(open_session())
    found = [one for subject in ("s0", "s1") for one in registry.versions(subject)]
    for subject in ("s0", "s1"):
        versions = [one for one in found if one.subject == subject]
        assert [one.version for one in versions] == list(range(1, len(versions) + 1))
        assert len({one.id for one in versions}) == len(versions)
    by_id = {one.id: one.text for one in found}
    assert sorted(by_id) == list(range(1, contents + 1))
    assert len(set(by_id.values())) == contents
    assert all(by_id[one.id] == one.text for one in found)
