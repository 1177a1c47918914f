import io
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brokers.embedded.progress import Step
from pipeline.cli.addresses import port_of
from pipeline.cli.commands.up import down_command, other_programs
from pipeline.cli.detached import Teller
from pipeline.cli.node_log import LineFormatter, log_to
from pipeline.cli.output import Format, Printer
from pipeline.cli.progress import words
from pipeline.cli.project import load_project
from pipeline.cli.supervise import HEALTHY_AFTER_S, WAITS_S, Supervisor, after_end
from pipeline.cli.table import Table
from pipeline.errors import RefusedError

Caller = Callable[..., Any]


@pytest.mark.parametrize(
    ("address", "port"),
    [("127.0.0.1:9092", 9092), ("localhost:2181/medusa", 2181), ("http://127.0.0.1:8081", 8081)],
)
def test_ports_of_loopback_addresses(address: str, port: int) -> None:
    """With or without a scheme and a path."""
    assert port_of("x", address) == port


@pytest.mark.parametrize("address", ["broker:9092", "127.0.0.1", "a:1,b:2", "127.0.0.1:port"])
def test_other_addresses_are_not_ours_to_start(address: str) -> None:
    """`up` never starts what the settings place elsewhere."""
    with pytest.raises(RefusedError, match="kafka"):
        port_of("kafka", address)


def test_other_programs_are_told_of_addresses_that_they_cannot_guess() -> None:
    """Nothing is said of the defaults, nor of what their environment says already."""
    usual = {"kafka.bootstrap_servers": "127.0.0.1:9092", "registry.url": "http://127.0.0.1:8081"}
    other = {**usual, "registry.url": "http://127.0.0.1:18081"}
    assert other_programs(usual, {}) == []
    assert other_programs(other, {"SCHEMA_REGISTRY_URL": "http://127.0.0.1:18081"}) == []
    assert other_programs(other, {})[1] == (
        "  export KAFKA_BOOTSTRAP_SERVERS=127.0.0.1:9092 SCHEMA_REGISTRY_URL=http://127.0.0.1:18081"
    )
    assert other_programs(usual, {"KAFKA_BOOTSTRAP_SERVERS": "elsewhere:1"})


def test_one_port_is_not_given_to_two_servers(medusa: Caller) -> None:
    """It is told before anything is started, with both of them."""
    called = medusa("up", "--kafka-port", "7001", "--registry-port", "7001")
    assert called.code == 65
    assert "Kafka and the schema registry cannot both have port 7001" in called.err
    assert not Path(".medusa").exists()


def test_up_outside_of_a_project_needs_to_be_told_where_data_go(medusa: Caller) -> None:
    """Nothing is left behind, and nothing said of `down` where nothing runs is wrong."""
    called = medusa("up")
    assert called.code == 65
    assert "there is no project here: no medusa.yaml in this folder or above it" in called.err
    assert "--data .medusa" in called.err
    assert not Path(".medusa").exists()
    down = medusa("down", "--data", "elsewhere")
    assert down.code == 0
    assert f"nothing runs in {Path.cwd()}/elsewhere;" in down.out


def test_the_command_that_ends_a_stack_names_the_folder_where_it_has_to(tmp_path: Path) -> None:
    """A folder that only the command line names has to be named again."""
    (tmp_path / "medusa.yaml").write_text("participant: us\n", encoding="utf-8")
    assert down_command(load_project({}, {}, tmp_path)) == "medusa down"
    there = load_project({"data": "/my data"}, {}, tmp_path)
    assert down_command(there) == "medusa down --data '/my data'"


def test_a_file_is_not_a_data_folder(medusa: Caller) -> None:
    """Every command says so, instead of what the system says about paths."""
    Path("file").write_text("", encoding="utf-8")
    for verb in ("up", "down", "status"):
        called = medusa(verb, "--data", "file")
        assert called.code == 69
        assert "/file is a file, so that the data folder cannot be there" in called.err


def test_steps_are_told_in_tenths() -> None:
    """A download of many parts does not flood a log."""
    assert words(Step("fetching", 0, 57)) == "fetching: 0 %"
    assert words(Step("fetching", 56, 57)) == "fetching: 90 %"
    assert words(Step("fetching", 57, 57)) == "fetching: 100 %"
    assert words(Step("waiting")) == "waiting"


class _Process:
    def __init__(self) -> None:
        self.exit_code: int | None = None


def test_a_node_is_started_again_after_growing_waits_and_then_left_alone() -> None:
    """Every end is told; after the last wait it is not started any more."""
    started: list[_Process] = []
    told: list[str] = []

    def start() -> _Process:
        started.append(_Process())
        return started[-1]

    supervisor = Supervisor(start, "node n1", told.append)
    supervisor.begin(0.0)
    now = 0.0
    for wait in WAITS_S:
        started[-1].exit_code = 1
        supervisor.look(now)
        count = len(started)
        supervisor.look(now + wait - 0.1)
        assert len(started) == count
        now += wait
        supervisor.look(now)
        assert len(started) == count + 1
    started[-1].exit_code = 1
    supervisor.look(now)
    supervisor.look(now + 10_000)
    assert len(started) == len(WAITS_S) + 1
    assert "left alone" in told[-1]


def test_a_node_that_ran_for_long_gets_new_tries() -> None:
    """An end after hours is not counted together with those of the start."""
    assert after_end(len(WAITS_S), HEALTHY_AFTER_S, 1000.0).again_at_s == 1000.0 + WAITS_S[0]
    assert after_end(len(WAITS_S), 1.0, 1000.0).again_at_s is None


def test_a_log_line_has_time_level_and_fragment(tmp_path: Path) -> None:
    """The form that `medusa logs` reads; a trace is indented below its line."""
    record = logging.LogRecord("x", logging.INFO, "f", 1, "starting %d\nmore", (3,), None)
    record.fragment = "tolls.moving"
    record.created = 0.0
    assert LineFormatter().format(record) == (
        "1970-01-01T00:00:00.000Z INFO [tolls.moving] starting 3\n    more"
    )
    log = tmp_path / "logs" / "node-n.log"
    before = logging.getLogger().level
    with log_to(log, verbose=False):
        logging.getLogger("medusa.test").info("hello", extra={"fragment": "a.b"})
    logging.getLogger().setLevel(before)
    assert log.read_text(encoding="utf-8").endswith("INFO [a.b] hello\n")


def test_what_py4j_says_of_a_lost_java_is_not_kept(tmp_path: Path) -> None:
    """It logs a trace for each call, some of them under no name; ours stay."""
    log = tmp_path / "node.log"
    with log_to(log, verbose=False):
        for name, path in (("py4j.clientserver", "x.py"), ("root", "/lib/py4j/java_gateway.py")):
            logger = logging.getLogger(name)
            logger.handle(logger.makeRecord(name, 40, path, 1, "no answer", (), None))
        logging.getLogger("pipeline.x").error("ended")
    assert log.read_text(encoding="utf-8").splitlines()[0].endswith("ERROR ended")


def test_the_starter_hears_steps_errors_and_readiness() -> None:
    """One JSON object a line through the pipe; after `ready` nothing more."""
    read_end, write_end = os.pipe()

    def fail() -> None:
        with Teller(write_end, lambda _: None) as teller:
            teller.step(Step("starting", 1, 2))
            raise RefusedError("taken", place="here", hint="go away")

    with pytest.raises(RefusedError):
        fail()
    with os.fdopen(read_end, encoding="utf-8") as pipe:
        step, error = (json.loads(line) for line in pipe)
    assert step == {"step": {"what": "starting", "done": 1, "total": 2}}
    assert error["error"]["code"] == "refused"
    read_end, write_end = os.pipe()
    with Teller(write_end, lambda _: None) as teller:
        teller.ready()
        teller.step(Step("late"))
    with os.fdopen(read_end, encoding="utf-8") as pipe:
        assert pipe.read() == '{"ready": true}\n'


def test_a_starter_that_left_does_not_end_the_stack() -> None:
    """Writing to a pipe that nobody reads is not an error."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with Teller(write_end, lambda _: None) as teller:
        teller.step(Step("starting"))
        teller.ready()


def test_tables_have_no_colour_in_a_file_and_are_never_cut() -> None:
    """What goes into a pipe is plain text, one row a line."""
    out = io.StringIO()
    printer = Printer(Format.TABLE, out=out, err=io.StringIO())
    printer.show({}, Table(("a", "b"), (("[red]x", "y" * 150),)))
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("[red]x")
    assert lines[1].endswith("y" * 150)
    assert "\x1b" not in out.getvalue()
