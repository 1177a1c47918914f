"""What the checkpoint store needs of objects: a folder, a bucket, and the twin in memory."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from brokers.ports import free_port
from pipeline.checkpoint_store.folder_objects import FolderObjects
from pipeline.checkpoint_store.objects import Objects
from pipeline.checkpoint_store.s3_objects import Bucket, S3Objects
from pipeline.clock import Deadline
from pipeline.errors import EnvironmentProblem, UnavailableError
from pipeline.secrets import Secret
from pipeline.system_clock import SystemClock
from tests.memory_objects import MemoryObjects

UP_WITHIN_S = 60.0
LARGE = bytes(range(256)) * 64 * 1_024


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server of the S3 interface, in a process of its own, with an empty bucket."""
    port = free_port()
    command = (sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _await_port(port)
            url = f"http://127.0.0.1:{port}"
            httpx.put(f"{url}/bucket").raise_for_status()
            yield url
        finally:
            server.kill()


def _await_port(port: int) -> None:
    clock = SystemClock()
    deadline = Deadline.after(clock, UP_WITHIN_S, "starting the server")
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            deadline.check()
            clock.sleep(0.1)
        else:
            return


def _bucket(endpoint: str, path: str) -> S3Objects:
    return S3Objects(Bucket(path, endpoint, "us-east-1", "key", Secret("secret")))


@pytest.fixture(params=["folder", "bucket", "memory"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    """An empty place."""
    if request.param == "folder":
        root = tmp_path / "objects"
        root.mkdir()
        return FolderObjects(root)
    if request.param == "memory":
        return MemoryObjects()
    return _bucket(request.getfixturevalue("endpoint"), f"bucket/{tmp_path.name}")


def test_an_object_has_the_content_that_was_written_last(objects: Objects, tmp_path: Path) -> None:
    """Small or large, as bytes or as a file."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(LARGE)
    assert objects.read("a/one") is None
    objects.write("a/one", b"first")
    objects.write("a/one", b"second")
    assert objects.read("a/one") == b"second"
    objects.send("a/large", source)
    assert objects.fetch("a/large", target)
    assert target.read_bytes() == LARGE
    objects.send("a/one", source)
    assert objects.read("a/one") == LARGE


def test_an_object_that_is_missing_is_no_error(objects: Objects, tmp_path: Path) -> None:
    """Neither to read nor to remove, and no file is made."""
    target = tmp_path / "target"
    assert not objects.fetch("none", target)
    assert not target.exists()
    objects.remove(("none", "a/none"))
    assert objects.keys("a/") == ()


def test_an_object_has_the_content_of_another_one(objects: Objects, tmp_path: Path) -> None:
    """It stays when the other one is removed; one that is missing gives none."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(LARGE)
    objects.send("a/one/large", source)
    assert objects.copy("a/one/large", "a/two/large")
    objects.remove_folder("a/one")
    assert objects.fetch("a/two/large", target)
    assert target.read_bytes() == LARGE
    assert not objects.copy("a/one/large", "a/three/large")
    assert objects.keys("a/") == ("a/two/large",)


def test_keys_are_those_below_a_prefix(objects: Objects) -> None:
    """Sorted, at any depth; removed ones are gone."""
    for key in ("a/b/two", "a/b/one", "a/c/d/three", "ab/four"):
        objects.write(key, b"content")
    assert objects.keys("a/") == ("a/b/one", "a/b/two", "a/c/d/three")
    objects.remove(("a/b/one", "a/c/d/three"))
    assert objects.keys("a/") == ("a/b/two",)
    assert objects.keys("ab/") == ("ab/four",)


def test_a_bucket_that_does_not_exist_is_named(endpoint: str, tmp_path: Path) -> None:
    """With what to look at."""
    missing = _bucket(endpoint, "nothing/here")
    with pytest.raises(UnavailableError, match=r"(?s)s3://nothing/here/a: .*store\.endpoint"):
        missing.write("a", b"content")
    assert not missing.fetch("a", tmp_path / "target")


def test_a_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    """After a bounded number of attempts."""
    port = free_port()
    with pytest.raises(UnavailableError, match="s3://bucket/a: the checkpoint store does not"):
        _bucket(f"http://127.0.0.1:{port}", "bucket").fetch("a", tmp_path / "target")


def test_a_folder_that_is_not_mounted_is_not_made(tmp_path: Path) -> None:
    """It would fill the disk below the mount point."""
    objects = FolderObjects(tmp_path / "absent")
    with pytest.raises(EnvironmentProblem, match="there is no folder"):
        objects.write("a", b"content")
    with pytest.raises(EnvironmentProblem, match="there is no folder"):
        objects.read("a")
    assert not (tmp_path / "absent").exists()


def test_a_folder_that_cannot_be_written_keeps_what_it_has(tmp_path: Path) -> None:
    """The unfinished file is removed, and the object is the one before."""
    root = tmp_path / "objects"
    root.mkdir()
    objects = FolderObjects(root)
    objects.write("a/one", b"first")
    with pytest.raises(EnvironmentProblem, match=r"store\.url .*objects: the checkpoint store"):
        objects.send("a/one", tmp_path / "absent")
    assert objects.read("a/one") == b"first"
    assert objects.keys("a/") == ("a/one",)
