"""The list of the files of a checkpoint copy. Pure."""

import json
from dataclasses import asdict, dataclass
from typing import Final

from pipeline.errors import RetryError
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, NetworkLife

FORMAT_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file of a checkpoint.

    Args:
        path: in the checkpoint's folder, with `/`.
        sha256: of its content, in hex; the name of its object.
        size: in bytes.
    """

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class CheckpointCopy:
    """A copy of a lane's checkpoint.

    Args:
        life: of the network.
        incarnation: of the lane.
        epoch: of the ownership under which it was made.
        batch: the last one that the state contains.
        written_at_ms: when it was made, by the owner's clock.
        state_format: of the state in it.
        spark: the version of the engine that wrote the state.
        files: of the checkpoint, sorted by path.
        plan: of that batch, as the engine has written it, with the positions after it; empty: not
            known, as in copies of earlier versions of this program.
    """

    life: NetworkLife
    incarnation: Incarnation
    epoch: Epoch
    batch: BatchId
    written_at_ms: Millis
    state_format: int
    spark: str
    files: tuple[CopiedFile, ...]
    plan: str = ""

    @property
    def size(self) -> int:
        """Of all files together, in bytes."""
        return sum(one.size for one in self.files)

    @property
    def objects(self) -> frozenset[str]:
        """The names of the objects that it consists of."""
        return frozenset(one.sha256 for one in self.files)


def encode(copy: CheckpointCopy) -> bytes:
    """The stored form."""
    return json.dumps({"format": FORMAT_VERSION, **asdict(copy)}, sort_keys=True).encode()


def decode(content: bytes, place: str) -> CheckpointCopy | None:
    """Read the stored form; None if a later version of this program wrote it.

    Raises:
        RetryError: it is damaged, or was replaced while it was read.
    """
    try:
        found = json.loads(content)
        if found["format"] != FORMAT_VERSION:
            return None
        return CheckpointCopy(
            life=NetworkLife(str(found["life"])),
            incarnation=Incarnation(str(found["incarnation"])),
            epoch=Epoch(int(found["epoch"])),
            batch=BatchId(int(found["batch"])),
            written_at_ms=Millis(int(found["written_at_ms"])),
            state_format=int(found["state_format"]),
            spark=str(found["spark"]),
            files=tuple(_file(one) for one in found["files"]),
            plan=str(found.get("plan", "")),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RetryError(
            f"the list of a checkpoint copy is damaged, or was replaced meanwhile: {error!r}",
            place=place,
            hint="nothing has to be done: the next copy has a new list",
        ) from error


def _file(found: dict[str, object]) -> CopiedFile:
    path, sha256 = str(found["path"]), str(found["sha256"])
    parts = path.split("/")
    if not all(parts) or ".." in parts or not sha256.isalnum():
        raise ValueError(f"{path!r} is no file of a checkpoint")
    return CopiedFile(path, sha256, int(str(found["size"])))
