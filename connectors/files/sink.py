"""The sink `files`: each batch becomes one file of a folder, JSON lines or Parquet.

Guarantee: exactly once, for readers of files whose names do not begin with a dot. The order of a
batch, under a lock:

1. The rows are written to `.medusa/<name>.tmp`.
2. `.medusa/marker.json` is replaced: the marker of the batch, and the name of its file. From here
   on the batch is stored.
3. The file is renamed to its name. After a crash before this, the next `open` does it.

A file may be moved or removed by its readers once it is there: nothing looks for it again.
"""

import json
from dataclasses import dataclass, replace
from typing import Final

from connectors.appending import rows_of
from connectors.catalogue import Context
from connectors.files.disk import Disk, LocalDisk
from connectors.files.options import PARQUET, sink_options
from connectors.files.tables import as_lines, as_parquet
from connectors.sink import Batch, Marker, Refuse
from pipeline.clock import Deadline
from pipeline.errors import BrokenInvariantError, FencedError, InputError
from pipeline.formats import check
from pipeline.ids import Offset, TopicId
from schemas.avro import AvroSchema
from schemas.json_value import JsonObject

FORMAT: Final = 1
"""Of the marker's file."""
HIDDEN: Final = ".medusa"
_MARKER, _NEXT = f"{HIDDEN}/marker.json", f"{HIDDEN}/marker.next"
_UNFINISHED = ".tmp"
_DIGITS = 10


@dataclass(frozen=True, slots=True)
class _Held:
    """The content of the marker's file; `file`: that of the batch, None: it had no rows."""

    opened: int
    marker: Marker | None
    file: str | None


class FilesSink:
    """Writes files into a folder; see the module.

    Args:
        disk: the folder.
        file_format: of the files.
        schema: of the rows.
    """

    def __init__(self, disk: Disk, file_format: str, schema: AvroSchema) -> None:
        self._disk = disk
        self._format = file_format
        self._schema = schema
        self._opened = 0

    def open(self, deadline: Deadline) -> Marker | None:
        """Complete the last batch, and exclude older writers by a number that counts up.

        Raises:
            InputError: the folder has files of a sink, and no marker.
            BrokenInvariantError: the marker is damaged.
            RetryError, UnavailableError: the folder cannot be used.
        """
        with self._disk.locked(deadline):
            held = self._held()
            if held is None:
                self._refuse_leftovers()
                held = _Held(0, None, None)
            else:
                self._complete(held)
            for name in self._disk.names(HIDDEN):
                if name.endswith(_UNFINISHED):
                    self._disk.remove(f"{HIDDEN}/{name}")
            self._opened = held.opened + 1
            self._replace(replace(held, opened=self._opened, file=None))
        return held.marker

    def write(self, batch: Batch, refuse: Refuse, deadline: Deadline) -> None:
        """Store a batch as a file.

        Raises:
            FencedError: a newer writer has opened the folder.
            RetryError, UnavailableError: the folder cannot be used.
        """
        rows = rows_of(batch, refuse)
        name = f"part-{batch.marker.number:0{_DIGITS}d}.{self._format}" if rows else None
        parquet = self._format == PARQUET
        content = as_parquet(rows, self._schema) if parquet else as_lines(rows)
        with self._disk.locked(deadline):
            # The lock is held from here to the rename: a newer writer is before it, or behind.
            held = self._held()
            if held is None or held.opened != self._opened:
                raise FencedError("a newer writer has opened the folder", place="sink of files")
            if name is not None:
                self._disk.write(f"{HIDDEN}/{name}{_UNFINISHED}", content)
            held = _Held(self._opened, batch.marker, name)
            self._replace(held)
            self._complete(held)

    def close(self) -> None:
        """No file is open between two calls."""

    def _complete(self, held: _Held) -> None:
        """Give the file of a stored batch its name, unless it has it."""
        unfinished = f"{held.file}{_UNFINISHED}"
        if held.file is not None and unfinished in self._disk.names(HIDDEN):
            self._disk.rename(f"{HIDDEN}/{unfinished}", held.file)

    def _replace(self, held: _Held) -> None:
        self._disk.write(_NEXT, _encode(held))
        self._disk.rename(_NEXT, _MARKER)

    def _held(self) -> _Held | None:
        content = self._disk.read(_MARKER)
        return None if content is None else _decode(content)

    def _refuse_leftovers(self) -> None:
        left = [name for name in self._disk.names(".") if name.startswith("part-")]
        if left:
            raise InputError(
                f"the folder has no marker, but {left[0]}",
                place=_MARKER,
                hint="choose an empty folder: these files would be replaced.",
            )


def make(given: JsonObject, context: Context) -> FilesSink:
    """A sink of its options.

    Raises:
        InputError: an option is wrong.
        BrokenInvariantError: there is no schema.
    """
    options = sink_options(given)
    if context.schema is None:
        raise BrokenInvariantError("a sink needs the schema of its topic")
    disk = LocalDisk(context.folder / options.folder, context.clock)
    return FilesSink(disk, options.format, context.schema)


def _encode(held: _Held) -> bytes:
    marker = held.marker
    found: JsonObject = {"format": FORMAT, "opened": held.opened, "file": held.file}
    if marker is not None:
        found["number"], found["topic_id"] = marker.number, str(marker.topic_id)
        found["positions"] = {str(p): int(o) for p, o in sorted(marker.positions.items())}
    return json.dumps(found, indent=1).encode()


def _decode(content: bytes) -> _Held:
    try:
        found = json.loads(content)
        check(int(found["format"]), "marker of a sink of files", _MARKER, FORMAT)
        marker = None
        if "number" in found:
            positions = {int(p): Offset(int(o)) for p, o in found["positions"].items()}
            marker = Marker(int(found["number"]), TopicId(found["topic_id"]), positions)
        return _Held(int(found["opened"]), marker, found["file"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrokenInvariantError("the marker is damaged", place=_MARKER) from error
