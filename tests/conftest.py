"""Shared fixtures: bounded waits, one embedded stack for all tests with servers, profiles."""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import settings as drawing

from brokers.embedded.stack import EmbeddedStack, StackSettings
from brokers.ports import free_port
from pipeline.cli.project import load_project
from schemas.embedded import start_registry
from tests import profiles

PAUSE_MIN_S, PAUSE_MAX_S = 0.02, 0.2
"""Polling intervals of a condition: short at first, for conditions that are soon true; longer
later, since many conditions query servers, which takes CPU time from the awaited work."""

profiles.register()


def pytest_report_header(config: pytest.Config) -> str:
    """The Hypothesis profile and seed of the run."""
    seed = config.getoption("hypothesis_seed", default=None)
    name = drawing.get_current_profile_name()
    return f"random examples: profile {name}, seed {seed or 'random'}"


def pytest_collection_finish() -> None:
    """Exclude what the collection has made, which remains, from all runs of the garbage collector.

    Else each of them would examine the modules and thousands of tests again.
    """
    gc.freeze()


class WaitFor(Protocol):
    """Waits until a condition is true."""

    def __call__(
        self, condition: Callable[[], object], what: str, *, within_s: float = 30.0
    ) -> None:
        """Return once the condition is true; fail with `what` at the deadline."""


@pytest.fixture(scope="session", autouse=True)
def _hears_interrupts() -> None:
    """Reset SIGINT, so child processes can be interrupted even if the tests run in the background.

    A shell lets its background jobs ignore SIGINT, and every child would inherit that.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def wait_for() -> WaitFor:
    """Waits for a condition with a deadline, in place of fixed sleeps."""

    def wait(condition: Callable[[], object], what: str, *, within_s: float = 30.0) -> None:
        ends_at = time.monotonic() + within_s
        pause_s = PAUSE_MIN_S
        while not condition():
            if time.monotonic() > ends_at:
                pytest.fail(f"{what}: not within {within_s:g} s")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    return wait


@pytest.fixture(scope="session")
def jar_cache() -> Path:
    """The machine's regular cache of jars."""
    return Path(load_project({}, os.environ, Path.cwd()).settings.cache)


def stack_settings(data: Path, cache: Path) -> StackSettings:
    """Settings of a test's own stack, on free ports."""
    return StackSettings(data, cache, free_port(), free_port(), free_port())


@pytest.fixture(scope="session")
def embedded_stack(
    tmp_path_factory: pytest.TempPathFactory, jar_cache: Path
) -> Iterator[EmbeddedStack]:
    """Running Kafka, ZooKeeper and registry, for tests marked `system`.

    All tests share it: use names that no other test uses.
    """
    settings = stack_settings(tmp_path_factory.mktemp("stack"), jar_cache)
    with EmbeddedStack(settings, start_registry) as stack:
        yield stack
