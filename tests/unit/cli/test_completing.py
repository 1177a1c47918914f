import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from pipeline.cli.completing import SERVERS_WITHIN_S, open_with_short_timeout, result_within
from pipeline.cli.main import COMMANDS, cli
from pipeline.cli.session import Opener
from pipeline.clock import Clock
from pipeline.errors import UnavailableError
from pipeline.ids import ParticipantId
from pipeline.operations.connections import CONNECT_TIMEOUT_S, Connections
from pipeline.settings import Settings, combine
from pipeline.system_clock import SystemClock
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import World, write_project

Caller = Callable[..., Any]


def _offered(connect: Opener, *words: str) -> list[str]:
    """The candidates for the last word."""
    shell = ShellComplete(cli, {"obj": connect}, "medusa", "_MEDUSA_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


@pytest.fixture
def connect(medusa: Caller) -> Opener:
    """A world with the network of cars, at version 2."""
    write_project(Path())
    found = opener(World.new())
    assert medusa("deploy", "--no-wait", opener=found).code == 0
    document = Path("network.yaml").read_text(encoding="utf-8")
    Path("network.yaml").write_text(document.replace("speed > 0", "speed > 1"), encoding="utf-8")
    assert medusa("deploy", "--no-wait", "--yes", opener=found).code == 0
    return found


def test_names_of_the_catalog_are_offered(connect: Opener) -> None:
    """Networks, fragments, streams and versions, each for its arguments."""
    assert _offered(connect, "get", "") == ["cars"]
    assert _offered(connect, "get", "x") == []
    parts = ["cars", "cars.moving", "cars.stopped"]
    assert sorted(_offered(connect, "pause", "")) == parts
    assert sorted(_offered(connect, "-o", "json", "pause", "cars.")) == parts[1:]
    assert sorted(_offered(connect, "dlq", "show", "")) == parts[1:]
    assert _offered(connect, "tail", "s") == ["sightings", "stopped"]
    assert _offered(connect, "tail", "cars.s") == ["cars.sightings", "cars.stopped"]
    assert _offered(connect, "rollback", "cars", "--to", "") == ["1", "2"]
    assert _offered(connect, "rollback", "vans", "--to", "") == []
    assert _offered(connect, "get", "cars", "--version", "") == ["1", "2"]
    assert _offered(connect, "diff", "cars", "--from", "1", "--to", "") == ["1", "2"]


def test_names_of_the_registry_are_offered(connect: Opener) -> None:
    """Subjects, and versions of a typed subject."""
    subject = "moving-cars-value"
    assert subject in _offered(connect, "schema", "show", "moving")
    assert _offered(connect, "schema", "show", subject, "--version", "") == ["1"]


def test_files_are_completed_by_the_shell(connect: Opener) -> None:
    """The completion returns only the type `file`."""
    shell = ShellComplete(cli, {"obj": connect}, "medusa", "_MEDUSA_COMPLETE")
    calls = (["plan"], ["plan", "-f"], ["schema", "register", "s"], ["schema", "export"], ["test"])
    for words in calls:
        assert [one.type for one in shell.get_completions(words, "")][:1] == ["file"], words


def test_verbs_are_offered(connect: Opener) -> None:
    """Those of the table, those of a group, and options."""
    assert _offered(connect, "de") == ["demo", "deploy", "destroy"]
    assert _offered(connect, "") == list(COMMANDS)
    assert _offered(connect, "dlq", "re") == ["redrive"]
    assert "--output" in _offered(connect, "--o")
    assert _offered(connect, "deplyo", "") == list(COMMANDS)


def test_nothing_is_offered_when_servers_are_unreachable(medusa: Caller) -> None:
    """No error is raised, for invalid settings neither."""

    def unreachable(_settings: Settings, _clock: Clock) -> Connections:
        raise UnavailableError("no answer", place="zookeeper")

    for words in (["history", ""], ["tail", ""], ["schema", "show", ""], ["dlq", "show", ""]):
        assert _offered(unreachable, *words) == []
    Path("medusa.yaml").write_text("nod: n1\n", encoding="utf-8")
    assert _offered(unreachable, "history", "") == []
    assert _offered(unreachable, "--set", "nod=1", "history", "") == []
    assert medusa("history", "x", opener=unreachable).code == 65


def test_the_catalog_is_read_as_it_is(medusa: Caller) -> None:
    """Completion never creates a missing catalog: it reads only the store."""
    world = World.new()
    write_project(Path())
    assert medusa("deploy", "--no-wait", opener=opener(world)).code == 0

    class StoreOnly:
        """Connections without anything but the store."""

        store = world.store
        participant = ParticipantId("local")

        def close(self) -> None:
            """No resources to release."""

    assert _offered(lambda *_: StoreOnly(), "get", "") == ["cars"]  # type: ignore[arg-type] # a part of Connections is enough


def test_a_late_result_is_not_awaited() -> None:
    """A result in time is returned; an error is an empty result."""

    def late() -> list[str]:
        time.sleep(5)
        return ["x"]

    began = time.monotonic()
    assert result_within(late, 0.05) == ()
    assert time.monotonic() - began < 4
    assert result_within(lambda: ["x"], 5.0) == ["x"]
    assert list(result_within(lambda: [str(1 // 0)], 5.0)) == []


def test_real_servers_have_a_short_timeout(connect: Opener) -> None:
    """Shorter than that of a verb; and logging is enabled again afterwards."""
    timeout_s = open_with_short_timeout(combine(()), SystemClock())._within_s
    assert timeout_s == SERVERS_WITHIN_S < CONNECT_TIMEOUT_S
    _offered(connect, "history", "")
    assert logging.root.manager.disable == logging.NOTSET
