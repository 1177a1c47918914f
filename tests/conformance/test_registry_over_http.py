"""Scenarios of the registry's HTTP API, on the in-memory store and on real ZooKeeper."""

from collections.abc import Iterator
from itertools import chain

import httpx
import pytest

from schemas.rest.rewriting import rewritten
from schemas.rest.routes import ROUTES, Route, find
from schemas.server import RegistryServer
from tests.conformance.conftest import OpenSession
from tests.conformance.registry import (
    aliases,
    bad_requests,
    compatibility,
    config,
    contexts,
    deletes,
    ids_and_guids,
    listing,
    lookups,
    metadata_and_rules,
    mode_and_import,
    normalising,
    references,
    registering,
    tags,
    the_server,
)
from tests.conformance.registry.scenario import Scenario, Step, carry_out

THEMES = (
    aliases,
    bad_requests,
    compatibility,
    config,
    contexts,
    deletes,
    ids_and_guids,
    listing,
    lookups,
    metadata_and_rules,
    mode_and_import,
    normalising,
    references,
    registering,
    tags,
    the_server,
)
SCENARIOS = [
    pytest.param(one, id=f"{theme.__name__.rpartition('.')[2]}: {one.name}")
    for theme in THEMES
    for one in theme.SCENARIOS
]


@pytest.fixture
def http(open_session: OpenSession) -> Iterator[httpx.Client]:
    """A client of a fresh registry."""
    server = RegistryServer(open_session(), "127.0.0.1", 0)
    server.start()
    try:
        with httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client:
            yield client
    finally:
        server.stop()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario: Scenario, http: httpx.Client) -> None:
    """Every response equals that of Confluent's registry."""
    carry_out(scenario.steps, http)


def test_every_route_is_requested() -> None:
    """Each route has a successful request; those of associations return that there are none."""
    steps = chain.from_iterable(one.steps for theme in THEMES for one in theme.SCENARIOS)
    requested = {_route(step) for step in steps if _answered(step)}
    missing = [f"{r.method} /{'/'.join(r.parts)}" for r in ROUTES if r not in requested]
    assert missing == []


def _answered(step: Step) -> bool:
    if "/associations/" in step.request:
        return step.status == 404
    return step.status // 100 == 2


def _route(step: Step) -> Route:
    method, _, target = step.request.partition(" ")
    parts = [part for part in target.partition("?")[0].split("/") if part]
    method = "GET" if method == "HEAD" else method
    return find(method, rewritten(parts, ())[0])[0]
