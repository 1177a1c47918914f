import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from connectors.catalogue import Context
from connectors.conformance.crashing import Steps
from connectors.conformance.sinks import (
    BATCHES,
    WITHIN_S,
    SinkWorld,
    accept_all,
    batch,
    check_sink,
    rows,
)
from connectors.files.disk import LocalDisk
from connectors.files.options import JSON_LINES, PARQUET
from connectors.files.sink import FORMAT, FilesSink, make
from connectors.files.tables import as_parquet
from connectors.sink import Batch
from pipeline.clock import Deadline
from pipeline.errors import BrokenInvariantError, InputError, NewerFormatError, RetryError
from schemas.avro import parse
from schemas.json_value import JsonObject
from tests.unit.connectors.twins import NAME, TickingClock

SCHEMA = parse(
    '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"},'
    ' {"name": "text", "type": "string"},'
    ' {"name": "none", "type": ["null", "double"], "default": null}]}'
)


class MemoryDisk:
    """A folder in memory; a file whose writing was not finished is torn by a crash."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.held = False

    def crash(self) -> None:
        """The process is gone, and with it its lock."""
        self.held = False


class SteppedDisk:
    """One process's view of the folder, with a step before and after each change."""

    def __init__(self, disk: MemoryDisk, step: Callable[[], None]) -> None:
        self._disk = disk
        self._step = step

    @contextmanager
    def locked(self, deadline: Deadline) -> Iterator[None]:
        """Only one at a time."""
        if self._disk.held:
            raise RetryError("locked", place=deadline.what)
        self._disk.held = True
        try:
            yield
        finally:
            self._disk.held = False

    def names(self, folder: str) -> tuple[str, ...]:
        """The names in a folder."""
        prefix = "" if folder == "." else f"{folder}/"
        found = (name.removeprefix(prefix) for name in self._disk.files if name.startswith(prefix))
        return tuple(sorted(name for name in found if "/" not in name))

    def read(self, name: str) -> bytes | None:
        """The content."""
        return self._disk.files.get(name)

    def write(self, name: str, content: bytes) -> None:
        """First a part of it."""
        self._step()
        self._disk.files[name] = content[: len(content) // 2]
        self._step()
        self._disk.files[name] = content
        self._step()

    def rename(self, old: str, new: str) -> None:
        """At once."""
        self._step()
        self._disk.files[new] = self._disk.files.pop(old)
        self._step()

    def remove(self, name: str) -> None:
        """At once."""
        self._step()
        self._disk.files.pop(name, None)
        self._step()


def rows_of(name: str, content: bytes) -> list[JsonObject]:
    """The rows of a file."""
    if name.endswith(PARQUET):
        return pq.read_table(io.BytesIO(content)).to_pylist()
    return [json.loads(one) for one in content.splitlines()]


def worlds(file_format: str) -> Callable[[], SinkWorld]:
    """Folders in memory."""

    def new() -> SinkWorld:
        disk = MemoryDisk()
        return SinkWorld(
            lambda steps: FilesSink(SteppedDisk(disk, steps), file_format, SCHEMA),
            lambda: [
                row
                for name, content in disk.files.items()
                if not name.startswith(".")
                for row in rows_of(name, content)
            ],
            disk.crash,
            TickingClock(),
        )

    return new


@pytest.mark.parametrize("file_format", [JSON_LINES, PARQUET])
def test_files_fulfil_the_contract(file_format: str) -> None:
    """With a crash at every step, also in the middle of a file."""
    assert check_sink(worlds(file_format)) > 5 * BATCHES


def local(folder: Path) -> SinkWorld:
    """A folder of this machine."""
    clock = TickingClock()
    return SinkWorld(
        lambda _steps: FilesSink(LocalDisk(folder, clock), JSON_LINES, SCHEMA),
        lambda: [
            row for path in folder.glob("part-*") for row in rows_of(path.name, path.read_bytes())
        ],
        lambda: None,
        clock,
    )


def deadline() -> Deadline:
    """Of a call."""
    return Deadline.after(TickingClock(), WITHIN_S, "a call")


def test_a_folder_of_this_machine_is_like_the_one_in_memory(tmp_path: Path) -> None:
    """Files with their names, nothing unfinished, and no file for a batch without rows."""
    world = local(tmp_path / "made" / "here")
    sink = world.open(Steps())
    assert sink.open(deadline()) is None
    sink.write(batch(1), accept_all, deadline())
    sink.write(Batch((), batch(2).marker), accept_all, deadline())
    sink.close()
    folder = tmp_path / "made" / "here"
    assert {path.name for path in folder.iterdir()} == {".medusa", "part-0000000001.jsonl"}
    assert {path.name for path in (folder / ".medusa").iterdir()} == {"lock", "marker.json"}
    assert world.open(Steps()).open(deadline()) == batch(2).marker
    assert len(world.stored()) == len(rows(1))


def test_a_lock_that_is_held_is_awaited(tmp_path: Path) -> None:
    """Until the deadline."""
    clock = TickingClock()
    disk = LocalDisk(tmp_path, clock)
    with disk.locked(deadline()):
        other = FilesSink(LocalDisk(tmp_path, clock), JSON_LINES, SCHEMA)
        with pytest.raises(RetryError):
            other.open(Deadline.after(clock, 5, "opening"))
    assert 5 <= clock.passed_s < 6


def test_a_folder_with_files_and_without_a_marker_is_refused(tmp_path: Path) -> None:
    """They would be replaced."""
    (tmp_path / "part-0000000001.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="no marker"):
        local(tmp_path).open(Steps()).open(deadline())


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", BrokenInvariantError),
        ("[]", BrokenInvariantError),
        ('{"format": 1, "opened": 1, "number": 1}', BrokenInvariantError),
        (f'{{"format": {FORMAT + 1}}}', NewerFormatError),
    ],
)
def test_a_marker_that_cannot_be_read_stops_it(
    tmp_path: Path, content: str, error: type[Exception]
) -> None:
    """Guessing would lose rows, or repeat them."""
    (tmp_path / ".medusa").mkdir()
    (tmp_path / ".medusa" / "marker.json").write_text(content)
    with pytest.raises(error):
        local(tmp_path).open(Steps()).open(deadline())


def test_columns_of_parquet_have_types() -> None:
    """Those of the schema, whatever the rows contain."""
    schema = parse(
        json.dumps(
            {
                "type": "record",
                "name": "R",
                "fields": [
                    {"name": "i", "type": "int"},
                    {"name": "b", "type": ["null", "boolean"]},
                    {"name": "d", "type": "double"},
                    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
                    {"name": "on", "type": {"type": "int", "logicalType": "date"}},
                    {"name": "list", "type": {"type": "array", "items": "int"}},
                ],
            }
        )
    )
    row: JsonObject = {
        "i": 1,
        "b": None,
        "d": "NaN",
        "at": "2026-01-01T00:00:00.250Z",
        "on": "2026-01-01",
        "list": [1, 2],
    }
    (found,) = pq.read_table(io.BytesIO(as_parquet([row], schema))).to_pylist()
    assert found["at"] == datetime(2026, 1, 1, microsecond=250_000, tzinfo=UTC)
    assert str(found["on"]) == "2026-01-01"
    assert str(found["d"]) == "nan"
    assert (found["i"], found["b"], found["list"]) == (1, None, "[1, 2]")


def test_wrong_options_are_named(tmp_path: Path) -> None:
    """With what would be right; a sink needs a schema."""
    with pytest.raises(InputError, match="one of jsonl, parquet"):
        make({"folder": ".", "format": "csv"}, Context(tmp_path, TickingClock(), SCHEMA, NAME))
    with pytest.raises(BrokenInvariantError):
        make({"folder": ".", "format": "jsonl"}, Context(tmp_path, TickingClock(), None, NAME))
