"""Files into a topic, and a topic into files, as a user runs them, with kill -9 in between."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.errors import ExitCode
from pipeline.ids import ConnectorName
from pipeline.names import ConnectorNames
from tests.system.support import OWNER, Installation

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

SCHEMA = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "n", "type": "long"}, {"name": "text", "type": "string"}],
}
WITHIN_S = 90.0
RECORDS, BAD_EVERY = 6_000, 500
KILLS = (700, 1_900, 3_300)
"""A run is killed when the topic, or the folder, has so many records."""
SOURCE = """\
connector: {name}_in
source: {{kind: files, folder: in, pattern: "*.jsonl", format: jsonl, settled: 1s}}
topic: {name}
schema: row.avsc
key: n
round: {{records: 97}}
rate: {{records: 1500}}
"""
SINK = """\
connector: {name}_out
sink: {{kind: files, folder: out, format: jsonl}}
topic: {name}
round: {{records: 89}}
rate: {{records: 1500}}
"""


def command(medusa: Installation, folder: Path, document: str, *further: str) -> list[str]:
    """A call of `medusa connect run`."""
    settings = {
        "kafka.bootstrap_servers": medusa.stack.kafka_bootstrap_servers,
        "zookeeper.connect": medusa.stack.zookeeper_connect,
        "registry.url": medusa.stack.registry_url,
    }
    words = [sys.executable, "-P", "-m", "pipeline.cli.main", "connect", "run"]
    words += [str(folder / document), *further]
    return [*words, *(f"--set={key}={value}" for key, value in settings.items())]


@contextmanager
def running(
    medusa: Installation, folder: Path, document: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """A run, killed at the end."""
    with (folder / f"{document}.out").open("ab") as out:
        process = subprocess.Popen(command(medusa, folder, document), stdout=out, stderr=out)
        try:
            yield process
        finally:
            process.kill()
            process.wait(30)


def run_to_end(medusa: Installation, folder: Path, document: str) -> dict[str, int]:
    """What a run moved that ended by itself."""
    done = subprocess.run(
        command(medusa, folder, document, "--until-end", "-o", "json"),
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN_S,
    )
    assert done.returncode == ExitCode.DONE, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The documents, and three files, with a bad line now and then."""
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "row.avsc").write_text(json.dumps(SCHEMA))
    lines = [
        "broken\n" if n % BAD_EVERY == 1 else f'{{"n":{n},"text":"row {n}"}}\n'
        for n in range(RECORDS)
    ]
    for number in range(3):
        (tmp_path / "in" / f"{number}.jsonl").write_text("".join(lines[number::3]))
    return tmp_path


def written(folder: Path) -> list[int]:
    """The numbers in the files of the sink."""
    paths = sorted((folder / "out").glob("part-*"))
    return [json.loads(line)["n"] for path in paths for line in path.read_text().splitlines()]


def test_kill_9_loses_nothing_and_repeats_nothing(medusa: Installation, folder: Path) -> None:
    """Neither of a source nor of a sink, whatever they were doing."""
    name = "connected"
    medusa.create_topic(name, 2)
    (folder / "in.yaml").write_text(SOURCE.format(name=name))
    (folder / "out.yaml").write_text(SINK.format(name=name))
    good = [n for n in range(RECORDS) if n % BAD_EVERY != 1]

    for count in KILLS:
        with running(medusa, folder, "in.yaml"):
            medusa.wait_for(
                lambda count=count: medusa.has_more_than(name, count),  # type: ignore[misc]
                f"{count} records are in the topic",
                within_s=WITHIN_S,
            )
            time.sleep(count % 7 / 100)  # not always directly after a transaction
    run_to_end(medusa, folder, "in.yaml")
    assert sorted(row["n"] for row in medusa.decoded(name)) == good
    letters = medusa.records(ConnectorNames(OWNER, ConnectorName(f"{name}_in")).dead_letters)
    assert [letter.value for letter in letters] == [b"broken"] * (RECORDS // BAD_EVERY)
    assert run_to_end(medusa, folder, "in.yaml")["records"] == 0

    for count in KILLS:
        with running(medusa, folder, "out.yaml"):
            medusa.wait_for(
                lambda count=count: len(written(folder)) > count,  # type: ignore[misc]
                f"{count} rows are in the folder",
                within_s=WITHIN_S,
            )
            time.sleep(count % 7 / 100)
    run_to_end(medusa, folder, "out.yaml")
    assert sorted(written(folder)) == good
    assert run_to_end(medusa, folder, "out.yaml")["records"] == 0


def test_a_later_run_ends_an_earlier_one(medusa: Installation, folder: Path) -> None:
    """And both together write each record once."""
    name = "connected_twice"
    medusa.create_topic(name, 1)
    (folder / "in.yaml").write_text(SOURCE.format(name=name))
    with running(medusa, folder, "in.yaml") as first:
        medusa.wait_for(
            lambda: medusa.has_more_than(name, 300), "the first run writes", within_s=WITHIN_S
        )
        run_to_end(medusa, folder, "in.yaml")
        with (folder / "in" / "more.jsonl").open("w") as more:
            more.write('{"n":-1,"text":"one more"}\n')
        medusa.wait_for(
            lambda: first.poll() is not None, "the first run has ended", within_s=WITHIN_S
        )
        assert first.returncode == ExitCode.TRY_AGAIN
    run_to_end(medusa, folder, "in.yaml")
    good = [n for n in range(RECORDS) if n % BAD_EVERY != 1]
    assert sorted(row["n"] for row in medusa.decoded(name)) == [-1, *good]
