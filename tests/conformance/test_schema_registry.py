"""Consistency of several registries on one store, in memory and on ZooKeeper."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import httpx
import pytest

from pipeline.ids import ZnodePath
from schemas.registry.lookup import subjects
from schemas.registry.names import SubjectName
from schemas.registry.prepare import Sent
from schemas.registry.register import register
from schemas.registry.registry import Registry
from schemas.registry.state import Decided, State, Version
from schemas.server import RegistryServer
from tests.conformance.conftest import OpenSession
from tests.conformance.registry.scenario import field_of, record

WRITERS = 4
CONTENTS = 6
Write = Callable[[int, str, str], tuple[int, int]]
"""(writer, subject, schema) → id and version."""


def _text(name: str) -> str:
    """A record whose field has a default, so all such records are mutually compatible."""
    return record(field_of(name, default=0))


@pytest.fixture
def registries(open_session: OpenSession) -> Iterator[Sequence[Registry]]:
    """Independent registries on one store."""
    made = [Registry(open_session(), ZnodePath("/schemas")) for _ in range(WRITERS)]
    yield made
    for one in made:
        one.close()


@pytest.fixture
def servers(open_session: OpenSession) -> Iterator[Sequence[httpx.Client]]:
    """Clients of as many servers on one store."""
    made = [RegistryServer(open_session(), "127.0.0.1", 0) for _ in range(WRITERS)]
    clients = []
    try:
        for one in made:
            one.start()
            clients.append(httpx.Client(base_url=one.url, trust_env=False, timeout=60))
        yield clients
    finally:
        for client in clients:
            client.close()
        for one in made:
            one.stop()


def _registered(registry: Registry, subject: str, text: str) -> tuple[int, int]:
    def decide(state: State) -> Decided[Version]:
        name = SubjectName.parse(subject)
        made = register(state, name, Sent(text), normal=False, now_ms=1)
        return Decided(made.version, made.changes)

    version = registry.change(decide)
    return version.id, version.number


def _posted(client: httpx.Client, subject: str, text: str) -> tuple[int, int]:
    answer = client.post(f"/subjects/{subject}/versions", json={"schema": text})
    assert answer.status_code == 200, answer.text
    return answer.json()["id"], answer.json()["version"]


def test_writes_of_one_registry_are_visible_to_another_at_once(
    registries: Sequence[Registry],
) -> None:
    """Ids and versions continue those of another registry, which are visible without waiting."""
    one, other, *_ = registries
    assert _registered(one, "some/subject", _text("a")) == (1, 1)
    assert _registered(other, "some/subject", _text("b")) == (2, 2)
    assert _registered(one, "some/subject", _text("b")) == (2, 2)
    for registry in registries:
        state = registry.state()
        assert [str(name) for name in subjects(state, "", deleted=False)] == ["some/subject"]
        assert [v.number for v in state.versions(SubjectName.parse("some/subject"))] == [1, 2]


def test_writes_of_one_server_are_visible_on_another_at_once(
    servers: Sequence[httpx.Client],
) -> None:
    """Schemas, levels, modes and deletes apply on all servers once one has acknowledged them."""
    one, other, *_ = servers

    def put(client: httpx.Client, path: str, body: Any) -> None:
        assert client.put(path, json=body).status_code == 200

    def refusal(client: httpx.Client, schema: str) -> int:
        answer = client.post("/subjects/s/versions", json={"schema": schema})
        return int(answer.json().get("error_code", 0))

    assert _posted(one, "s", _text("a")) == (1, 1)
    assert other.get("/subjects/s/versions/latest").json()["id"] == 1
    assert refusal(other, '"string"') == 40901
    put(one, "/config/s", {"compatibility": "NONE"})
    assert _posted(other, "s", '"string"') == (2, 2)
    put(other, "/mode/s", {"mode": "READONLY"})
    assert refusal(one, '"int"') == 42205
    put(one, "/mode/s", {"mode": "READWRITE"})
    assert other.delete("/subjects/s").json() == [1, 2]
    assert [client.get("/subjects").json() for client in servers] == [[]] * WRITERS


def _race(write: Write) -> list[tuple[str, str, int, int]]:
    """Concurrent registrations of all contents by all writers, each in another order."""
    start = Barrier(WRITERS)

    def run(number: int) -> list[tuple[str, str, int, int]]:
        start.wait(30)
        done = []
        for step in range(CONTENTS):
            text, subject = _text(f"f{(step + number) % CONTENTS}"), f"s{step % 2}"
            done.append((subject, text, *write(number, subject, text)))
        return done

    with ThreadPoolExecutor(WRITERS) as threads:
        return [one for some in threads.map(run, range(WRITERS)) for one in some]


def _check(found: Sequence[tuple[str, str, int, int]]) -> None:
    """Assert one id per content, one version per content of a subject, without gaps."""
    ids = {(text, number) for _, text, number, _ in found}
    assert sorted(number for _, number in ids) == list(range(1, CONTENTS + 1))
    for subject in ("s0", "s1"):
        versions = {(text, version) for s, text, _, version in found if s == subject}
        assert sorted(version for _, version in versions) == list(range(1, len(versions) + 1))
        assert len({text for text, _ in versions}) == len(versions)


def test_concurrent_registries_assign_unique_ids_and_versions(
    registries: Sequence[Registry],
) -> None:
    """All register equal and different contents under the same subjects concurrently."""
    _check(_race(lambda number, subject, text: _registered(registries[number], subject, text)))


def test_concurrent_servers_assign_unique_ids_and_versions(
    servers: Sequence[httpx.Client],
) -> None:
    """The same over HTTP; afterwards all servers list the same."""
    found = _race(lambda number, subject, text: _posted(servers[number], subject, text))
    _check(found)
    listed = [json.dumps(client.get("/schemas").json()) for client in servers]
    assert len(set(listed)) == 1
    listed_versions = {
        (v["subject"], v["schema"], v["id"], v["version"]) for v in json.loads(listed[0])
    }
    assert listed_versions == set(found)
