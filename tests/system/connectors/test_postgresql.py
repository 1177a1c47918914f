"""A topic into a table of PostgreSQL, as a user runs it, with kill -9 of the run in between."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psycopg.errors import UndefinedTable

from pipeline.errors import ExitCode
from pipeline.ids import ConnectorName
from pipeline.names import ConnectorNames
from tests.postgresql import DATABASE, PASSWORD, USER, Server, running
from tests.system.support import OWNER, Installation

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

SCHEMA = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "n", "type": "long"}, {"name": "text", "type": "string"}],
}
NAME = "to_postgresql"
WITHIN_S = 90.0
RECORDS, REFUSED = 4_000, 1_234
KILLS = (500, 1_500, 2_700)
"""A run is killed when the table has so many rows."""
SOURCE = f"""\
connector: {NAME}_in
source: {{kind: files, folder: in, pattern: "*.jsonl", format: jsonl, settled: 0s}}
topic: {NAME}
schema: row.avsc
key: n
"""
SINK = f"""\
connector: {NAME}_out
sink:
  kind: postgresql
  host: 127.0.0.1
  port: %d
  database: {DATABASE}
  user: {USER}
  password: ${{file:password}}
  tls: disable
  table: rows
topic: {NAME}
round: {{records: 89}}
rate: {{records: 1500}}
"""


def command(medusa: Installation, file: Path, *further: str) -> list[str]:
    """A call of `medusa connect run`."""
    settings = {
        "kafka.bootstrap_servers": medusa.stack.kafka_bootstrap_servers,
        "zookeeper.connect": medusa.stack.zookeeper_connect,
        "registry.url": medusa.stack.registry_url,
    }
    words = [sys.executable, "-P", "-m", "pipeline.cli.main", "connect", "run", str(file)]
    return [*words, *further, *(f"--set={key}={value}" for key, value in settings.items())]


def run_to_end(medusa: Installation, file: Path) -> dict[str, int]:
    """What a run moved that ended by itself."""
    words = command(medusa, file, "--until-end", "-o", "json")
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=WITHIN_S)
    assert done.returncode == ExitCode.DONE, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


@contextmanager
def killed(medusa: Installation, file: Path) -> Iterator[None]:
    """A run that ends with the block, by kill -9."""
    with file.with_suffix(".out").open("ab") as out:
        process = subprocess.Popen(command(medusa, file), stdout=out, stderr=out)
        try:
            yield
        finally:
            process.kill()
            process.wait(30)


def numbers(server: Server) -> list[int]:
    """The rows of the table; none before it is made."""
    with server.connect() as connection:
        try:
            return [n for (n,) in connection.execute("SELECT n FROM rows ORDER BY n")]
        except UndefinedTable:
            return []


def test_kill_9_loses_nothing_and_repeats_nothing(medusa: Installation, tmp_path: Path) -> None:
    """And the one row that the table refuses is a dead letter."""
    (tmp_path / "in").mkdir()
    (tmp_path / "row.avsc").write_text(json.dumps(SCHEMA))
    (tmp_path / "password").write_text(PASSWORD)
    texts = ["\0" if n == REFUSED else f"row {n}" for n in range(RECORDS)]
    lines = (json.dumps({"n": n, "text": text}) for n, text in enumerate(texts))
    (tmp_path / "in" / "a.jsonl").write_text("".join(f"{line}\n" for line in lines))
    medusa.create_topic(NAME, 2)
    (tmp_path / "in.yaml").write_text(SOURCE)
    assert run_to_end(medusa, tmp_path / "in.yaml")["records"] == RECORDS

    with running({}) as server:
        out = tmp_path / "out.yaml"
        out.write_text(SINK % server.port)
        for count in KILLS:
            with killed(medusa, out):
                medusa.wait_for(
                    lambda count=count: len(numbers(server)) > count,  # type: ignore[misc]
                    f"{count} rows are in the table",
                    within_s=WITHIN_S,
                )
        run_to_end(medusa, out)
        assert numbers(server) == [n for n in range(RECORDS) if n != REFUSED]
        assert run_to_end(medusa, out)["records"] == 0
    letters = medusa.records(ConnectorNames(OWNER, ConnectorName(f"{NAME}_out")).dead_letters)
    assert {dict(one.headers)["medusa.error.reason"] for one in letters} == {b"refused"}
    assert len({one.value for one in letters}) == 1
