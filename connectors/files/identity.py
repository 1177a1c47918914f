"""Which file a position belongs to: by its number in the file system and by what it begins with.

A file keeps its number when it is renamed, as by rotation, and another file gets the number once it
is free. So digests of its first bytes are compared too, of several lengths, so that a file that
became shorter is told from another one. At each read the last bytes before the position are
compared, which shows that nothing before it was changed.
"""

import hashlib
import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import BinaryIO

from connectors.source import Position, SourceChangedError, SplitId
from schemas.json_value import JsonObject, object_of

HEAD_BYTES = 1_024
LENGTHS = (16, 64, 256, HEAD_BYTES)
"""So many first bytes are digested, as far as they were read; and all that were, up to the last."""
TAIL_BYTES = 64


class Match(Enum):
    """Whether a file with the number of a position is the file of the position."""

    SAME = "same"
    OTHER = "other"
    UNCLEAR = "too short to tell"


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a file.

    Args:
        inode: the number of the file.
        heads: digests of its first bytes, by their length, which is never above the offset.
        tail: the digest of the last bytes before the offset.
        offset: where the next record begins.
        line: the number of its line, from 1.
        name: of the file when it was read last, for people.
    """

    inode: int
    heads: tuple[tuple[int, str], ...]
    tail: str
    offset: int
    line: int
    name: str

    def as_json(self) -> Position:
        """The position as it is stored."""
        return {
            "inode": self.inode,
            "heads": {str(length): head for length, head in self.heads},
            "tail": self.tail,
            "offset": self.offset,
            "line": self.line,
            "name": self.name,
        }


def parse(position: JsonObject, split: SplitId) -> Place:
    """A stored position.

    Raises:
        SourceChangedError: it is not one of a file.
    """
    try:
        inode, offset, line = (int(str(position[name])) for name in ("inode", "offset", "line"))
        heads = object_of(position["heads"]).items()
        found = tuple(sorted((int(length), str(head)) for length, head in heads))
        return Place(inode, found, str(position["tail"]), offset, line, str(position["name"]))
    except (KeyError, ValueError, TypeError) as error:
        message = "the position is none of a file"
        raise SourceChangedError(message, place=f"split {split}") from error


def digest(data: bytes) -> str:
    """A digest of bytes."""
    return hashlib.sha256(data).hexdigest()[:32]


def beginning(inode: int, name: str) -> Place:
    """The position at the beginning of a file."""
    return Place(inode, (), digest(b""), 0, 1, name)


def place_at(file: BinaryIO, name: str, offset: int, line: int) -> Place:
    """The position at an offset of an open file."""
    first = _at(file, 0, min(HEAD_BYTES, offset))
    lengths = sorted({*(one for one in LENGTHS if one <= offset), len(first)} - {0})
    heads = tuple((length, digest(first[:length])) for length in lengths)
    start = max(0, offset - TAIL_BYTES)
    tail = digest(_at(file, start, offset - start))
    return Place(os.fstat(file.fileno()).st_ino, heads, tail, offset, line, name)


def match(place: Place, path: Path, size: int) -> Match:
    """Compare the beginning of a file that has the number of a position.

    Args:
        place: the position.
        path: of the file.
        size: of the file, in bytes.
    """
    fitting = [(length, head) for length, head in place.heads if length <= size]
    if not fitting:
        return Match.UNCLEAR if place.heads else Match.SAME
    length, head = fitting[-1]
    with path.open("rb") as file:
        return Match.SAME if digest(file.read(length)) == head else Match.OTHER


def check(place: Place, file: BinaryIO, name: str) -> None:
    """Compare an open file with a position in it.

    Raises:
        SourceChangedError: the file is another one, is shorter, or was changed.
    """
    size = os.fstat(file.fileno()).st_size
    where = f"file {name}, line {place.line}, byte {place.offset}"
    if size < place.offset:
        raise shorter(size, place, where)
    now = place_at(file, name, place.offset, place.line)
    if (now.heads, now.tail) != (place.heads, place.tail):
        message = "what was read of the file is not what it contains now"
        hint = "a file that is read may only grow: write changed records into a new file."
        raise SourceChangedError(message, place=where, hint=hint)


def shorter(size: int, place: Place, where: str) -> SourceChangedError:
    """The error about a file that became shorter than what was read of it."""
    return SourceChangedError(
        f"the file has {size} bytes now, fewer than the {place.offset} that were read",
        place=where,
        hint="a file that is read may only grow: rotate files by renaming them.",
    )


def _at(file: BinaryIO, start: int, count: int) -> bytes:
    file.seek(start)
    return file.read(count)
