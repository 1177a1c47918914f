"""Fixtures for pytest, which finds them when Medusa is installed.

pytest imports this file in every run, so it imports nothing that a test has not requested.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pipeline.testing.by_hand import TestedNetwork
    from pipeline.testing.lane import StartQuery


@pytest.fixture(scope="session")
def medusa_session() -> Iterator["StartQuery"]:
    """A Spark session for all tests of a run; opened by the first that needs it."""
    import os  # noqa: PLC0415

    from pipeline.settings import SETTINGS, combine  # noqa: PLC0415
    from pipeline.testing.session import open_tests  # noqa: PLC0415

    written = {s.name: os.environ[s.environment] for s in SETTINGS if os.environ.get(s.environment)}
    with open_tests(combine((("environment", written),))) as queries:
        yield queries


@pytest.fixture
def medusa_network(
    request: pytest.FixtureRequest, medusa_session: "StartQuery"
) -> Iterator[Callable[..., "TestedNetwork"]]:
    """Reads and starts a network: `medusa_network("../network.yaml")`, relative to the test's file.

    It returns a `TestedNetwork`; dead letters that the test did not expect fail it.
    """
    from pipeline.testing.by_hand import TestedNetwork  # noqa: PLC0415

    networks: list[TestedNetwork] = []
    with ExitStack() as undo:

        def start(file: str = "../network.yaml", **options: Any) -> TestedNetwork:
            path = request.path.parent / file
            network = TestedNetwork(path, request.node.name, medusa_session, **options)
            undo.callback(network.close)
            networks.append(network)
            return network

        yield start
        for network in networks:
            network.expect_dead_letters([])
