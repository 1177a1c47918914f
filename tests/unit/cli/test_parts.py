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
from pipeline.cli.detached import StartupReporter
from pipeline.cli.node_log import LineFormatter, log_to
from pipeline.cli.output import Format, Printer
from pipeline.cli.progress import words
from pipeline.cli.project import load_project
from pipeline.cli.supervise import HEALTHY_AFTER_S, WAITS_S, Supervisor, decide_restart
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
def test_addresses_of_other_machines_are_refused(address: str) -> None:
    """`up` starts servers on this machine only."""
    with pytest.raises(RefusedError, match="kafka"):
        port_of("kafka", address)


def test_variables_for_other_programs_are_printed_if_needed() -> None:
    """Not for default addresses, nor for those that the environment contains already."""
    usual = {"kafka.bootstrap_servers": "127.0.0.1:9092", "registry.url": "http://127.0.0.1:8081"}
    other = {**usual, "registry.url": "http://127.0.0.1:18081"}
    assert other_programs(usual, {}) == []
    assert other_programs(other, {"SCHEMA_REGISTRY_URL": "http://127.0.0.1:18081"}) == []
    assert other_programs(other, {})[1] == (
        "  export KAFKA_BOOTSTRAP_SERVERS=127.0.0.1:9092 SCHEMA_REGISTRY_URL=http://127.0.0.1:18081"
    )
    assert other_programs(usual, {"KAFKA_BOOTSTRAP_SERVERS": "elsewhere:1"})


def test_two_servers_with_one_port_are_refused(medusa: Caller) -> None:
    """The error names both, before anything is started."""
    called = medusa("up", "--kafka-port", "7001", "--registry-port", "7001")
    assert called.code == 65
    assert "Kafka and the schema registry cannot both have port 7001" in called.err
    assert not Path(".medusa").exists()


def test_up_outside_a_project_requires_a_data_folder(medusa: Caller) -> None:
    """No file is written; `down` without a stack succeeds."""
    called = medusa("up")
    assert called.code == 65
    assert "there is no project here: no medusa.yaml in this folder or above it" in called.err
    assert "--data .medusa" in called.err
    assert not Path(".medusa").exists()
    down = medusa("down", "--data", "elsewhere")
    assert down.code == 0
    assert f"nothing runs in {Path.cwd()}/elsewhere;" in down.out


def test_the_down_command_names_the_data_folder_if_needed(tmp_path: Path) -> None:
    """A folder that was given on the command line has to be given again."""
    (tmp_path / "medusa.yaml").write_text("participant: us\n", encoding="utf-8")
    assert down_command(load_project({}, {}, tmp_path)) == "medusa down"
    there = load_project({"data": "/my data"}, {}, tmp_path)
    assert down_command(there) == "medusa down --data '/my data'"


def test_a_file_is_not_a_data_folder(medusa: Caller) -> None:
    """Every command prints the same error, not one of the operating system."""
    Path("file").write_text("", encoding="utf-8")
    for verb in ("up", "down", "status"):
        called = medusa(verb, "--data", "file")
        assert called.code == 69
        assert "/file is a file, so that the data folder cannot be there" in called.err


def test_steps_are_printed_in_tenths() -> None:
    """A download of many parts does not flood a log."""
    assert words(Step("fetching", 0, 57)) == "fetching: 0 %"
    assert words(Step("fetching", 56, 57)) == "fetching: 90 %"
    assert words(Step("fetching", 57, 57)) == "fetching: 100 %"
    assert words(Step("waiting")) == "waiting"


class _Process:
    def __init__(self) -> None:
        self.exit_code: int | None = None


def test_a_node_is_restarted_with_back_off_and_a_limit() -> None:
    """Every exit is reported; after the last wait there is no restart."""
    started: list[_Process] = []
    reports: list[str] = []

    def start() -> _Process:
        started.append(_Process())
        return started[-1]

    supervisor = Supervisor(start, "node n1", reports.append)
    supervisor.begin(0.0)
    now = 0.0
    for wait in WAITS_S:
        started[-1].exit_code = 1
        supervisor.check(now)
        count = len(started)
        supervisor.check(now + wait - 0.1)
        assert len(started) == count
        now += wait
        supervisor.check(now)
        assert len(started) == count + 1
    started[-1].exit_code = 1
    supervisor.check(now)
    supervisor.check(now + 10_000)
    assert len(started) == len(WAITS_S) + 1
    assert "left alone" in reports[-1]


def test_the_restarts_of_a_node_that_ran_for_long_begin_again() -> None:
    """An exit after hours is not counted together with those after the start."""
    assert decide_restart(len(WAITS_S), HEALTHY_AFTER_S, 1000.0).again_at_s == 1000.0 + WAITS_S[0]
    assert decide_restart(len(WAITS_S), 1.0, 1000.0).again_at_s is None


def test_a_log_line_has_time_level_and_fragment(tmp_path: Path) -> None:
    """The format that `medusa logs` parses; further lines are indented."""
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


def test_entries_of_py4j_about_a_dead_jvm_are_dropped(tmp_path: Path) -> None:
    """It logs a trace per call, some with the root logger; Medusa's entries are kept."""
    log = tmp_path / "node.log"
    with log_to(log, verbose=False):
        for name, path in (("py4j.clientserver", "x.py"), ("root", "/lib/py4j/java_gateway.py")):
            logger = logging.getLogger(name)
            logger.handle(logger.makeRecord(name, 40, path, 1, "no answer", (), None))
        logging.getLogger("pipeline.x").error("ended")
    assert log.read_text(encoding="utf-8").splitlines()[0].endswith("ERROR ended")


def test_the_parent_process_receives_steps_errors_and_readiness() -> None:
    """One JSON object per line of the pipe; `ready` is the last."""
    read_end, write_end = os.pipe()

    def fail() -> None:
        with StartupReporter(write_end, lambda _: None) as reporter:
            reporter.step(Step("starting", 1, 2))
            raise RefusedError("taken", place="here", hint="go away")

    with pytest.raises(RefusedError):
        fail()
    with os.fdopen(read_end, encoding="utf-8") as pipe:
        step, error = (json.loads(line) for line in pipe)
    assert step == {"step": {"what": "starting", "done": 1, "total": 2}}
    assert error["error"]["code"] == "refused"
    read_end, write_end = os.pipe()
    with StartupReporter(write_end, lambda _: None) as reporter:
        reporter.ready()
        reporter.step(Step("late"))
    with os.fdopen(read_end, encoding="utf-8") as pipe:
        assert pipe.read() == '{"ready": true}\n'


def test_the_stack_outlives_the_parent_process() -> None:
    """Writing to a closed pipe is not an error."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with StartupReporter(write_end, lambda _: None) as reporter:
        reporter.step(Step("starting"))
        reporter.ready()


def test_tables_have_no_colour_in_a_file_and_are_never_cut() -> None:
    """Output to a pipe is plain text, one line per row."""
    out = io.StringIO()
    printer = Printer(Format.TABLE, out=out, err=io.StringIO())
    printer.show({}, Table(("a", "b"), (("[red]x", "y" * 150),)))
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("[red]x")
    assert lines[1].endswith("y" * 150)
    assert "\x1b" not in out.getvalue()
