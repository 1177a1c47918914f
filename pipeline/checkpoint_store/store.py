"""The checkpoint store: the newest copy of each lane's checkpoint.

Each epoch has a folder of its own, so that an owner that was fenced, and does not know it yet, can
damage only its own:

    <lane>/epoch-N/copy.json    the list of the files of the newest copy
    <lane>/epoch-N/<sha256>     the content of a file

A file is written before the list that names it, and named by its content; so a list names only what
is there, and whatever is read is compared with its name. What decides is read by key: a list of
keys is used only to remove what is not needed any more.
"""

import hashlib
import os
import shutil
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from pipeline.checkpoint_store.manifest import CheckpointCopy, CopiedFile, decode, encode
from pipeline.checkpoint_store.objects import Objects
from pipeline.errors import RetryError
from pipeline.ids import Epoch, Incarnation
from pipeline.names import LaneNames

AT_ONCE: Final = 4
"""How many objects are sent or fetched at the same time."""
EPOCHS: Final = 10
"""In how many epochs up to the last owner's a copy is looked for: owners may have failed before
they made one."""
TRIES: Final = 3
"""How often a list is read that looks damaged: some readers ask for the size first, and then for
the content, which may have been replaced in between."""
_LIST: Final = "copy.json"
_PROBE: Final = "probe-of-medusa-doctor"


class CheckpointStore:
    """Copies of checkpoints as objects."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    @property
    def place(self) -> str:
        """Names the place, in messages."""
        return self._objects.place

    def put(
        self,
        names: LaneNames,
        copy: CheckpointCopy,
        sources: Mapping[str, Path],
        there: set[str],
        check: Callable[[], None],
    ) -> None:
        """Write a copy, which becomes the newest one of its epoch.

        Args:
            names: of the lane.
            copy: its files.
            sources: path → the file with its content.
            there: names of objects that the epoch's folder has; those that are sent are added.
            check: called before each file and before the list; an error from it ends the copy.

        Raises:
            RetryError: a file has changed since it was listed.
            MedusaError: the store cannot be used. In each case the copy before stays the newest.
        """
        missing = {one.sha256: one for one in copy.files if one.sha256 not in there}

        def send(one: CopiedFile) -> None:
            check()
            source = sources[one.path]
            self._objects.send(_key(names, copy.epoch, one.sha256), source)
            if source.stat().st_size != one.size:
                raise RetryError(f"{one.path} has changed while it was copied", place=str(source))
            there.add(one.sha256)

        _each(send, missing.values())
        check()
        self._objects.write(_key(names, copy.epoch, _LIST), encode(copy))

    def reuse(
        self,
        names: LaneNames,
        copy: CheckpointCopy,
        there: set[str],
        check: Callable[[], None],
    ) -> None:
        """Write what a copy has in common with the newest one of an earlier epoch, from that.

        Nothing is sent for it, and the folder of the epoch has objects of its own: the earlier
        owner may still remove its own ones.

        Args:
            names: of the lane.
            copy: the first one of its epoch.
            there: names of objects that the epoch's folder has; those that are written are added.
            check: called before each object; an error from it ends it.

        Raises:
            MedusaError: the store cannot be used, or the earlier list is damaged.
        """
        before = self.newest(names, Epoch(copy.epoch - 1))
        if before is None:
            return
        common = {one.sha256: one for one in copy.files if one.sha256 in before.objects - there}

        def write(one: CopiedFile) -> None:
            check()
            source = _key(names, before.epoch, one.sha256)
            if self._objects.copy(source, _key(names, copy.epoch, one.sha256)):
                there.add(one.sha256)

        _each(write, common.values())

    def newest(self, names: LaneNames, epoch: Epoch) -> CheckpointCopy | None:
        """The newest copy of a lane, of an epoch or of one of a few before it; None: there is none.

        Raises:
            MedusaError: the store cannot be used, or the list is damaged.
        """
        for one in range(epoch, max(0, epoch - EPOCHS), -1):
            found = self._read(_key(names, Epoch(one), _LIST))
            if found is not None:
                return decode(*found)
        return None

    def _read(self, key: str) -> tuple[bytes, str] | None:
        """A list, and where it is, read again if it looks damaged; None: there is none."""
        place = f"{self._objects.place}/{key}"
        for attempt in range(TRIES):
            content = self._objects.read(key)
            if content is None:
                return None
            try:
                decode(content, place)
            except RetryError:
                if attempt == TRIES - 1:
                    raise
            else:
                return content, place
        return None

    def discard(self, names: LaneNames, epoch: Epoch, incarnation: Incarnation) -> None:
        """Remove the lists of the copies of an incarnation, up to an epoch: they are of no use."""
        for one in range(epoch, max(0, epoch - EPOCHS), -1):
            key = _key(names, Epoch(one), _LIST)
            found = self._read(key)
            copy = None if found is None else decode(*found)
            if copy is not None and copy.incarnation == incarnation:
                self._objects.remove((key,))

    def fetch(
        self,
        names: LaneNames,
        copy: CheckpointCopy,
        target: Path,
        have: Mapping[str, Path],
        check: Callable[[], None],
    ) -> None:
        """Write the files of a copy into an empty folder.

        Args:
            names: of the lane.
            copy: its files.
            target: the folder.
            have: name of an object → a file on this machine with its content.
            check: called before each file; an error from it ends the fetch.

        Raises:
            RetryError: a file is missing, or has another content than its name says.
            MedusaError: the store cannot be used.
        """
        for folder in {(target / one.path).parent for one in copy.files}:
            folder.mkdir(parents=True, exist_ok=True)

        def fetch(one: CopiedFile) -> None:
            check()
            path, own = target / one.path, have.get(one.sha256)
            if own is not None:
                _link(own, path)
                return
            key = _key(names, copy.epoch, one.sha256)
            found = self._objects.fetch(key, path)
            if not found or path.stat().st_size != one.size or digest(path) != one.sha256:
                what = "has another content" if found else "is missing"
                raise RetryError(
                    f"a file of the checkpoint copy of batch {copy.batch} {what}: {one.path}",
                    place=f"{self._objects.place}/{key}",
                    hint="nothing has to be done: without it the state is built from the log",
                )

        _each(fetch, copy.files)

    def remove(self, names: LaneNames, epoch: Epoch, objects: Collection[str]) -> None:
        """Remove objects of an epoch's folder."""
        self._objects.remove(tuple(_key(names, epoch, one) for one in sorted(objects)))

    def tidy(self, copy: CheckpointCopy, names: LaneNames) -> None:
        """Remove what the first copy of an epoch makes useless.

        That is the folders of earlier epochs, and what an earlier run under this epoch has left.
        """
        used, left = {_LIST, *copy.objects}, []
        folders = set[str]()
        for key in self._objects.keys(f"{_lane(names)}/"):
            folder, _, name = key.rpartition("/")
            number = folder.rpartition("/")[2].removeprefix("epoch-")
            if number.isdecimal() and int(number) < copy.epoch:
                folders.add(folder)
            elif number.isdecimal() and int(number) == copy.epoch and name not in used:
                left.append(key)
        for folder in sorted(folders):
            self._objects.remove_folder(folder)
        self._objects.remove(tuple(left))

    def check(self, folder: str) -> None:
        """Write an object, read it, and remove it.

        Raises:
            MedusaError: the store cannot be used.
        """
        key, content = f"{folder}/{_PROBE}", b"medusa doctor"
        self._objects.write(key, content)
        try:
            if self._objects.read(key) != content:
                raise RetryError("an object that was written is not read", place=self.place)
        finally:
            self._objects.remove((key,))

    def remove_epoch(self, names: LaneNames, epoch: Epoch) -> None:
        """Remove all that was written under an epoch."""
        self._objects.remove_folder(names.checkpoint(epoch))

    def remove_all(self, folder: str) -> int:
        """Remove all copies below a folder, as of a network; returns the number of objects."""
        found = len(self._objects.keys(f"{folder}/"))
        if found:
            self._objects.remove_folder(folder)
        return found


def digest(path: Path) -> str:
    """SHA-256 of a file's content, in hex."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _lane(names: LaneNames) -> str:
    return names.checkpoint(Epoch(0)).rpartition("/")[0]


def _key(names: LaneNames, epoch: Epoch, name: str) -> str:
    return f"{names.checkpoint(epoch)}/{name}"


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _each(do: Callable[[CopiedFile], None], files: Collection[CopiedFile]) -> None:
    """Do something for each file, a few at a time; after the first error no more are begun.

    The threads are daemons: a file of a mounted folder that hangs does not keep the process.
    """
    left, failed = deque(files), list[BaseException]()

    def work() -> None:
        while left and not failed:
            try:
                do(left.popleft())
            except IndexError:  # another thread has taken the last one
                return
            except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
                failed.append(error)

    threads = [
        threading.Thread(target=work, name="checkpoint store", daemon=True) for _ in range(AT_ONCE)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
