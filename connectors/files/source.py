"""The source `files`: records of the files in a folder, also of files that grow and are rotated.

A split is a file, whatever its name is now. Guarantee: exactly once, as long as files only grow;
what is not so is noticed where it can be, and stops the source.
"""

import csv
import fnmatch
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from connectors.catalogue import Context
from connectors.files import identity
from connectors.files.options import CSV, SourceOptions, source_options
from connectors.files.records import BOM, RECORD_MAX, Reading, ends_of, fields_of, types_of
from connectors.source import (
    Chunk,
    Limit,
    Position,
    Positions,
    Refused,
    Row,
    SplitId,
)
from pipeline.errors import UnavailableError
from schemas.json_value import JsonObject


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    inode: int
    size: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class _Header:
    columns: tuple[str, ...]
    end: int
    lines: int


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a file that a chunk is made of: `data` begins at `start`."""

    data: bytes
    start: int
    line: int
    complete: bool


class FilesSource:
    """Reads the files of a folder; see the module.

    Args:
        options: of the document.
        context: of the connector.
    """

    def __init__(self, options: SourceOptions, context: Context) -> None:
        self._options = options
        self._folder = context.folder / options.folder
        self._clock = context.clock
        self._types = {} if context.schema is None else types_of(context.schema.root)
        self._files: dict[SplitId, _File] = {}
        self._known: dict[_File, SplitId] = {}

    def splits(self, known: Positions) -> Sequence[SplitId]:
        """Files with something that was not read, those changed longest ago first.

        Raises:
            SourceChangedError: a file became shorter than what was read of it.
            UnavailableError: the folder cannot be read.
        """
        places = {split: identity.parse(position, split) for split, position in known.items()}
        by_inode: dict[int, list[SplitId]] = {}
        for name, at in places.items():
            by_inode.setdefault(at.inode, []).append(name)
        before, self._known, self._files = self._known, {}, {}
        for file in self._present():
            # A file that was not changed is not opened again.
            split = before.get(file)
            if split is None or split not in places:
                split = self._split_of(file, by_inode.get(file.inode, []), places)
            if split is None or split in self._files:
                continue
            self._known[file] = split
            place = places.get(split)
            if place is not None and file.size < place.offset:
                raise identity.shorter(file.size, place, f"file {file.path.name}")
            if place is None or file.size > place.offset:
                self._files[split] = file
        return tuple(self._files)

    def read(self, split: SplitId, position: Position | None, limit: Limit) -> Chunk:
        """The next records of a file.

        Raises:
            SourceChangedError: the file is not what it was.
            UnavailableError: it cannot be read.
        """
        found = self._files[split]
        name = found.path.name
        place = identity.beginning(found.inode, name)
        if position is not None:
            place = identity.parse(position, split)
        try:
            with found.path.open("rb") as file:
                if os.fstat(file.fileno()).st_ino == found.inode:
                    identity.check(place, file, name)
                    return self._chunk(file, replace(place, name=name), limit)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise UnavailableError(
                f"the file cannot be read: {error.strerror}", place=f"file {found.path}"
            ) from error
        # Renamed or removed since the folder was listed: the next round finds out.
        return Chunk((), position or place.as_json(), more=True)

    def stored(self, positions: Positions) -> None:
        """Files stay as they are."""

    def close(self) -> None:
        """No file is open between two calls."""

    # --- files ------------------------------------------------------------------------------------

    def _present(self) -> list[_File]:
        """The files of the folder that are not hidden, those changed longest ago first."""
        try:
            with os.scandir(self._folder) as entries:
                listed = [_listed(one) for one in entries if not one.name.startswith(".")]
        except FileNotFoundError as error:
            raise UnavailableError("there is no such folder", place=str(self._folder)) from error
        except OSError as error:
            raise UnavailableError(
                f"the folder cannot be read: {error.strerror}", place=str(self._folder)
            ) from error
        found = (one for one in listed if one is not None)
        return sorted(found, key=lambda one: (one.changed_ns, one.path.name))

    def _split_of(
        self, file: _File, candidates: list[SplitId], places: dict[SplitId, identity.Place]
    ) -> SplitId | None:
        """The split of a file; a new one if its name fits. None: it is not read."""
        try:
            for split in sorted(candidates, key=lambda one: -places[one].offset):
                found = identity.match(places[split], file.path, file.size)
                if found is identity.Match.SAME:
                    return split
                if found is identity.Match.UNCLEAR and not self._is_old(file.changed_ns):
                    return None  # it may still grow
            if not file.size or not fnmatch.fnmatchcase(file.path.name, self._options.pattern):
                return None
            with file.path.open("rb") as opened:
                head = identity.digest(opened.read(identity.HEAD_BYTES))
        except OSError:
            return None  # renamed or removed meanwhile: the next round
        first = SplitId(f"{file.inode:x}-{head[:16]}")
        # Another file may have had the number, and begun alike, when it was shorter.
        return next(one for one in _numbered(first) if one not in places)

    # --- records ----------------------------------------------------------------------------------

    def _chunk(self, file: BinaryIO, place: identity.Place, limit: Limit) -> Chunk:
        columns = None
        if self._options.format == CSV:
            header = self._header(file)
            if header is None:
                return Chunk((), place.as_json(), more=False)
            columns = header.columns
            if place.offset < header.end:
                place = identity.place_at(file, place.name, header.end, 1 + header.lines)
        options = self._options
        reading = Reading(options.encoding, columns, options.delimiter, self._types)
        size = os.fstat(file.fileno()).st_size
        file.seek(place.offset)
        data = file.read(min(limit.size_bytes, RECORD_MAX) + RECORD_MAX + 1)
        complete = place.offset + len(data) >= size and self._settled(file)
        part = _Part(data, place.offset, place.line, complete)
        records, end, line = self._records(part, reading, place.name, limit)
        if end == place.offset and len(data) > RECORD_MAX:
            return self._too_long(file, place)
        after = identity.place_at(file, place.name, end, line)
        return Chunk(records, after.as_json(), more=end > place.offset and end < size)

    def _records(
        self, part: _Part, reading: Reading, name: str, limit: Limit
    ) -> tuple[tuple[Row | Refused, ...], int, int]:
        """The records of a part, and the offset and line behind them."""
        records: list[Row | Refused] = []
        at, line, size = 0, part.line, 0
        if part.start == 0 and part.data.startswith(BOM):
            at = len(BOM)
        quoted = reading.columns is not None
        while len(records) < limit.records and at < len(part.data):
            ended = ends_of(part.data, at, quoted=quoted, complete=part.complete)
            if ended is None:
                break
            raw = part.data[ended.start : ended.end].rstrip(b"\r\n")
            if records and size + len(raw) > limit.size_bytes:
                break
            record = reading.record(raw, f"file {name}, line {line}")
            if record is not None:
                records.append(record)
                size += len(raw)
            at, line = ended.end, line + ended.lines
        return tuple(records), part.start + at, line

    def _too_long(self, file: BinaryIO, place: identity.Place) -> Chunk:
        """Pass over a line that is longer than a record may be; it is awaited if it has no end."""
        file.seek(place.offset)
        first = file.read(RECORD_MAX + 1)
        length = len(first)
        while block := file.read(RECORD_MAX):
            found = block.find(b"\n")
            if found >= 0:
                length += found + 1
                break
            length += len(block)
        else:
            if not self._settled(file):
                return Chunk((), place.as_json(), more=False)
        message = f"the line has {length} bytes, at most {RECORD_MAX} are accepted"
        where = f"file {place.name}, line {place.line}"
        refused = Refused(first[:10_000], where, "too-long", message)
        after = identity.place_at(file, place.name, place.offset + length, place.line + 1)
        return Chunk((refused,), after.as_json(), more=True)

    def _header(self, file: BinaryIO) -> _Header | None:
        """The first line of CSV; None: the file does not have its end yet."""
        file.seek(0)
        data = file.read(RECORD_MAX)
        begin = len(BOM) if data.startswith(BOM) else 0
        ended = ends_of(data, begin, quoted=True, complete=self._settled(file))
        if ended is None:
            return None
        text = data[begin : ended.end].decode(self._options.encoding, errors="replace")
        try:
            columns = tuple(fields_of(text.rstrip("\r\n"), self._options.delimiter))
        except csv.Error:
            columns = ()  # so every other line has too many
        return _Header(columns, ended.end, ended.lines)

    def _settled(self, file: BinaryIO) -> bool:
        """Whether a file was not changed for so long that its last line is taken as whole."""
        return self._is_old(os.fstat(file.fileno()).st_mtime_ns)

    def _is_old(self, changed_ns: int) -> bool:
        age_ms = self._clock.now_ms() - changed_ns // 1_000_000
        return age_ms >= self._options.settled_ms


def make(given: JsonObject, context: Context) -> FilesSource:
    """A source of its options.

    Raises:
        InputError: an option is wrong.
    """
    return FilesSource(source_options(given), context)


def _listed(entry: "os.DirEntry[str]") -> _File | None:
    """A file of the folder; None: it is none, or was removed meanwhile."""
    try:
        at = entry.stat()
        is_file = entry.is_file()
    except FileNotFoundError:
        return None
    return _File(Path(entry.path), at.st_ino, at.st_size, at.st_mtime_ns) if is_file else None


def _numbered(first: SplitId) -> Iterator[SplitId]:
    """An id, and the same with numbers."""
    yield first
    for number in range(2, 1_000_000):
        yield SplitId(f"{first}.{number}")
