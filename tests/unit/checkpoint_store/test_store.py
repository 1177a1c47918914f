"""The checkpoint store over objects in memory, whose answers may be old."""

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.checkpoint_store.manifest import CheckpointCopy, CopiedFile, decode, encode
from pipeline.checkpoint_store.store import AT_ONCE, EPOCHS, TRIES, CheckpointStore
from pipeline.errors import MedusaError, RetryError, UnavailableError
from pipeline.ids import (
    BatchId,
    Epoch,
    FragmentId,
    FragmentName,
    Incarnation,
    Millis,
    NetworkId,
    NetworkLife,
    NetworkName,
    ParticipantId,
)
from pipeline.names import FragmentNames
from tests.memory_objects import MemoryObjects

NETWORK = NetworkId(ParticipantId("local"), NetworkName("tolls"))
NAMES = FragmentNames(FragmentId(NETWORK, FragmentName("counts"))).stable
FILES = {"commits/7": b"commit", "state/0/0/7.zip": b"state", "metadata": b"metadata"}


def name_of(content: bytes) -> str:
    """The name of an object."""
    return sha256(content).hexdigest()


def copy_of(files: Mapping[str, bytes], epoch: int = 1, batch: int = 7) -> CheckpointCopy:
    """A copy of these files."""
    listed = tuple(
        CopiedFile(path, name_of(content), len(content)) for path, content in sorted(files.items())
    )
    one, at = Incarnation("1-1"), Millis(1)
    return CheckpointCopy(
        NetworkLife("life"), one, Epoch(epoch), BatchId(batch), at, 2, "4.2.0", listed
    )


def put(
    store: CheckpointStore,
    folder: Path,
    files: Mapping[str, bytes],
    *,
    epoch: int = 1,
    batch: int = 7,
    there: frozenset[str] = frozenset(),
) -> CheckpointCopy:
    """Write a copy of these files."""
    sources = dict[str, Path]()
    for number, (path, content) in enumerate(files.items()):
        sources[path] = folder / f"{epoch}-{batch}-{number}"
        sources[path].write_bytes(content)
    copy = copy_of(files, epoch, batch)
    store.put(NAMES, copy, sources, set(there), lambda: None)
    return copy


def fetched(store: CheckpointStore, copy: CheckpointCopy, folder: Path) -> dict[str, bytes]:
    """The files of a copy, as fetched."""
    folder.mkdir()
    store.fetch(NAMES, copy, folder, {}, lambda: None)
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_the_newest_copy_is_the_last_one_that_was_written(tmp_path: Path) -> None:
    """With all its files, of which those that are there are not sent again."""
    objects = MemoryObjects()
    store = CheckpointStore(objects)
    assert store.newest(NAMES, Epoch(1)) is None
    first = put(store, tmp_path, FILES)
    assert store.newest(NAMES, Epoch(1)) == first
    assert fetched(store, first, tmp_path / "first") == FILES
    objects.sent.clear()
    later = {**FILES, "commits/8": b"another"}
    second = put(store, tmp_path, later, batch=8, there=first.objects)
    assert [key.rpartition("/")[2] for key in objects.sent] == [name_of(b"another"), "copy.json"]
    assert store.newest(NAMES, Epoch(1)) == second
    assert fetched(store, second, tmp_path / "second") == later


def test_the_newest_epoch_counts_and_a_few_before_it(tmp_path: Path) -> None:
    """An owner may have failed before its first copy; a later epoch than the last is not read."""
    store = CheckpointStore(MemoryObjects())
    first, third = (put(store, tmp_path, FILES, epoch=epoch) for epoch in (1, 3))
    assert store.newest(NAMES, Epoch(2)) == first
    assert store.newest(NAMES, Epoch(3)) == store.newest(NAMES, Epoch(3 + EPOCHS - 1)) == third
    assert store.newest(NAMES, Epoch(3 + EPOCHS)) is None


@pytest.mark.parametrize("written", range(len(FILES) + 1))
def test_a_copy_that_was_not_finished_is_none(written: int, tmp_path: Path) -> None:
    """The one before it stays the newest, whatever was written of it."""
    objects = MemoryObjects()
    store = CheckpointStore(objects)
    first = put(store, tmp_path, {"metadata": b"old"})
    objects.fails_after = written
    with pytest.raises(UnavailableError):
        put(store, tmp_path, FILES, batch=8)
    assert store.newest(NAMES, Epoch(1)) == first
    assert fetched(store, first, tmp_path / "first") == {"metadata": b"old"}


@pytest.mark.parametrize("damage", [None, b"", b"other", b"statf"])
def test_a_file_that_is_missing_or_another_one_is_found(
    damage: bytes | None, tmp_path: Path
) -> None:
    """By its name, which is that of its content."""
    objects = MemoryObjects()
    store = CheckpointStore(objects)
    copy = put(store, tmp_path, FILES)
    key = next(key for key in objects.content if key.endswith(name_of(b"state")))
    if damage is None:
        del objects.content[key]
    else:
        objects.content[key] = damage
    with pytest.raises(RetryError, match=r"state/0/0/7\.zip"):
        fetched(store, copy, tmp_path / "fetched")


def test_what_this_machine_has_is_not_fetched(tmp_path: Path) -> None:
    """It is linked."""
    objects = MemoryObjects()
    store = CheckpointStore(objects)
    copy = put(store, tmp_path, FILES)
    own = tmp_path / "own"
    own.write_bytes(b"state")
    objects.content = {key: c for key, c in objects.content.items() if c != b"state"}
    (tmp_path / "target").mkdir()
    store.fetch(NAMES, copy, tmp_path / "target", {name_of(b"state"): own}, lambda: None)
    assert (tmp_path / "target/state/0/0/7.zip").read_bytes() == b"state"


def test_a_fetch_ends_by_its_check(tmp_path: Path) -> None:
    """For instance when nobody waits for it any more."""

    def check() -> None:
        raise RetryError("enough")

    store = CheckpointStore(MemoryObjects())
    copy = put(store, tmp_path, FILES)
    (tmp_path / "target").mkdir()
    with pytest.raises(RetryError, match="enough"):
        store.fetch(NAMES, copy, tmp_path / "target", {}, check)


def test_what_the_epoch_before_has_is_not_sent_again(tmp_path: Path) -> None:
    """Its objects are copied within the store; one that is missing there is sent."""
    objects = MemoryObjects()
    store = CheckpointStore(objects)
    first = put(store, tmp_path, FILES)
    later = {**FILES, "commits/8": b"another"}
    copy, there = copy_of(later, epoch=3), set[str]()
    gone = next(key for key in objects.content if key.endswith(name_of(b"state")))
    del objects.content[gone]
    store.reuse(NAMES, copy, there, lambda: None)
    assert there == first.objects - {name_of(b"state")}
    objects.sent.clear()
    put(store, tmp_path, later, epoch=3, there=frozenset(there))
    sent = {key.rpartition("/")[2] for key in objects.sent}
    assert sent == {name_of(b"state"), name_of(b"another"), "copy.json"}
    store.tidy(copy, NAMES)
    assert fetched(store, copy, tmp_path / "third") == later
    store.reuse(NAMES, copy_of(later, epoch=1), set(), lambda: None)  # there is none before


def test_a_reuse_ends_by_its_check(tmp_path: Path) -> None:
    """As a copy does."""

    def check() -> None:
        raise RetryError("enough")

    store = CheckpointStore(MemoryObjects())
    put(store, tmp_path, FILES)
    with pytest.raises(RetryError, match="enough"):
        store.reuse(NAMES, copy_of(FILES, epoch=2), set(), check)


def test_a_list_of_an_earlier_version_has_no_plan() -> None:
    """A field that was added later."""
    copy = replace(copy_of(FILES), plan="v1")
    assert decode(encode(copy), "") == copy
    found = json.loads(encode(copy))
    del found["plan"]
    assert decode(json.dumps(found).encode(), "") == replace(copy, plan="")


@given(old=st.sets(st.integers(0, 20)))
def test_tidying_keeps_the_copy_whatever_the_list_shows(old: set[int]) -> None:
    """Earlier epochs that it shows go, later ones stay; never what the copy consists of."""
    objects = MemoryObjects()
    store = CheckpointStore(objects)
    copy = copy_of(FILES, epoch=3)
    lane = NAMES.checkpoint(Epoch(3)).rpartition("/")[0]
    own = {f"{lane}/epoch-00000003/{name}": b"" for name in (*copy.objects, "copy.json")}
    earlier = {f"{lane}/epoch-00000002/{number}": b"" for number in range(5)}
    left = {f"{lane}/epoch-00000003/left": b""}
    later = {f"{lane}/epoch-00000004/copy.json": b""}
    objects.content = {**own, **earlier, **left, **later}
    listed = [key for number, key in enumerate(sorted(objects.content)) if number in old]
    objects.listed = (*listed, f"{lane}/epoch-00000001/removed-long-ago")
    store.tidy(copy, NAMES)
    useless = left.keys() & set(listed)
    useless |= earlier.keys() if earlier.keys() & set(listed) else set()
    assert objects.content.keys() == {*own, *earlier, *left, *later} - useless


def test_the_copies_of_a_network_are_removed(tmp_path: Path) -> None:
    """Those of others stay."""
    objects = MemoryObjects()
    store = CheckpointStore(objects)
    put(store, tmp_path, FILES)
    objects.content["local/tolls_2/counts/x"] = b""
    assert store.remove_all("local/tolls") == len(FILES) + 1
    assert list(objects.content) == ["local/tolls_2/counts/x"]


def test_a_list_of_files_is_read_as_written() -> None:
    """A later format is none; a damaged one is named."""
    copy = copy_of(FILES)
    assert decode(encode(copy), "") == copy
    assert decode(b'{"format": 2}', "") is None
    stored = encode(copy)
    for damaged in (b"", b"{}", stored[:-9], stored.replace(b"metadata", b"../../x")):
        with pytest.raises(RetryError, match=r"copy\.json: the list of a checkpoint copy"):
            decode(damaged, "s3://b/copy.json")


def test_a_store_that_fails_says_so() -> None:
    """It is no copy that is missing."""
    objects = MemoryObjects()
    objects.failing = True
    with pytest.raises(MedusaError):
        CheckpointStore(objects).newest(NAMES, Epoch(1))


def test_a_list_that_is_replaced_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    """As by a reader that asks for the size of an object first."""

    class Replaced(MemoryObjects):
        torn = 1

        def read(self, key: str) -> bytes | None:
            found = super().read(key)
            if found is not None and self.torn:
                self.torn -= 1
                return found[:-10]
            return found

    objects = Replaced()
    store = CheckpointStore(objects)
    copy = put(store, tmp_path, FILES)
    assert store.newest(NAMES, Epoch(1)) == copy
    objects.torn = TRIES
    with pytest.raises(RetryError, match="was replaced meanwhile"):
        store.newest(NAMES, Epoch(1))


def test_copies_of_a_state_that_cannot_be_read_are_discarded(tmp_path: Path) -> None:
    """Those of its incarnation, of whichever epoch."""
    store = CheckpointStore(MemoryObjects())
    for epoch in (1, 2):
        copy = put(store, tmp_path, FILES, epoch=epoch)
    store.discard(NAMES, Epoch(2), Incarnation("another"))
    assert store.newest(NAMES, Epoch(2)) == copy
    store.discard(NAMES, Epoch(2), copy.incarnation)
    assert store.newest(NAMES, Epoch(2)) is None


def test_a_file_that_grows_while_it_is_sent_makes_no_copy(tmp_path: Path) -> None:
    """The name of the object would not be that of its content."""

    class Growing(MemoryObjects):
        def send(self, key: str, source: Path) -> None:
            super().send(key, source)
            source.write_bytes(b"longer than before")

    store = CheckpointStore(Growing())
    with pytest.raises(RetryError, match="has changed while it was copied"):
        put(store, tmp_path, FILES)
    assert store.newest(NAMES, Epoch(1)) is None


def test_a_copy_ends_by_its_check(tmp_path: Path) -> None:
    """For instance when the node stops: no further file is sent."""
    objects, calls = MemoryObjects(), list[int]()

    def check() -> None:
        calls.append(1)
        if len(calls) > 1:
            raise RetryError("enough")

    (tmp_path / "source").write_bytes(b"content 0")
    copy = copy_of({str(number): b"content %d" % number for number in range(9)})
    sources = {one.path: tmp_path / "source" for one in copy.files}
    with pytest.raises(RetryError, match="enough"):
        CheckpointStore(objects).put(NAMES, copy, sources, set(), check)
    assert len(objects.sent) <= AT_ONCE
