"""Parts of the ZooKeeper store that need no server."""

import logging
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    ZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError

from brokers import versioned_store as store
from brokers.ports import free_port
from brokers.versioned_store import Versioned
from brokers.zookeeper import (
    ZooKeeperStore,
    split_connect_string,
    translated,
    zookeeper_servers,
)
from pipeline.errors import (
    BrokenInvariantError,
    InputError,
    MedusaError,
    NotAllowedError,
    UnavailableError,
    UsageError,
)
from pipeline.settings import combine


@pytest.mark.parametrize(
    ("connect", "expected"),
    [
        ("a:2181", ("a:2181", "")),
        ("a:2181/", ("a:2181", "")),
        ("a/medusa", ("a", "/medusa")),
        ("a:1,b:2/x/y", ("a:1,b:2", "/x/y")),
        (" a:1 , b:2 /x", ("a:1,b:2", "/x")),
        ("[::1]:2181/x", ("[::1]:2181", "/x")),
    ],
)
def test_hosts_and_chroot_are_parsed(connect: str, expected: tuple[str, str]) -> None:
    """The usual ZooKeeper connect string is accepted."""
    assert split_connect_string(connect) == expected


@pytest.mark.parametrize("connect", ["", "/x", "a:b", "a:99999", ":2181", "a:1,,b:2"])
def test_a_malformed_connect_string_is_a_usage_error(connect: str) -> None:
    """The error contains the setting and the expected form."""
    with pytest.raises(UsageError, match="is not a host and port") as caught:
        split_connect_string(connect)
    assert "zookeeper.connect" in caught.value.place


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NoNodeError(), store.NoSuchPathError),
        (NodeExistsError(), store.PathExistsError),
        (BadVersionError(), store.VersionConflictError),
        (NoAuthError(), NotAllowedError),
        (AuthFailedError(), NotAllowedError),
        (KazooTimeoutError(), UnavailableError),
        (ZookeeperError(), UnavailableError),
        (KazooException(), UnavailableError),
        (ValueError("x"), BrokenInvariantError),
    ],
)
def test_errors_of_the_driver_are_translated(error: Exception, kind: type[MedusaError]) -> None:
    """The table gives every error a kind, and the place is kept."""
    found = translated(error, "/some/path")
    assert type(found) is kind
    assert found.place == "/some/path"


def test_the_driver_does_not_log_requests(caplog: pytest.LogCaptureFixture) -> None:
    """One of them contains the password, at any log level."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("medusa.zookeeper").debug("Sending request: Auth(auth='me:geheim')")
    assert "geheim" not in caplog.text


def test_an_incomplete_tls_setting_is_refused() -> None:
    """The authority setting enables encryption."""
    settings = combine((("test", {"zookeeper.tls.key": "key.pem"}),))
    with pytest.raises(InputError, match=r"zookeeper\.tls\.ca is missing"):
        zookeeper_servers(settings)


def test_an_unreachable_server_is_reported_within_the_limit() -> None:
    """A connection to nothing ends in time and names the address."""
    port = free_port()
    began = time.monotonic()
    with pytest.raises(UnavailableError, match=str(port)):
        ZooKeeperStore.connect(f"127.0.0.1:{port}/medusa", 0.5)
    assert time.monotonic() - began < 5


@dataclass
class Answer:
    """The pending result of a request."""

    path: str
    value: object
    log: list[str]

    def get(self, timeout: float) -> object:
        """The value, or the error of a path that does not exist."""
        assert timeout > 0
        self.log.append(f"answer {self.path}")
        if self.value is None:
            raise NoNodeError
        return self.value


@dataclass
class Driver:
    """A client of ZooKeeper with two paths below its chroot; it logs requests and results."""

    log: list[str] = field(default_factory=list)
    connected: bool = True

    def add_listener(self, _listener: object) -> None:
        """Its session never ends."""

    def get_async(self, path: str) -> Answer:
        """Values and their statistics."""
        self.log.append(f"get {path}")
        versions = {"/chroot/a": (b"1", 3), "/chroot/b": (None, 0)}
        value, version = versions.get(path, (None, None))
        stored = None if version is None else (value, SimpleNamespace(version=version))
        return Answer(path, stored, self.log)

    def get_children_async(self, path: str) -> Answer:
        """Names in any order."""
        self.log.append(f"children {path}")
        return Answer(path, {"/chroot": ["b", "a"], "/chroot/a": []}.get(path), self.log)


def test_reads_of_many_paths_are_pipelined() -> None:
    """In the order of the paths, with the chroot; a missing one is None, or has no names."""
    driver = Driver()
    opened = ZooKeeperStore(cast("Any", driver), "host", "/chroot", 5.0)
    found = opened.get_all(("/b", "/none", "/a"))
    assert found == (Versioned(b"", 0), None, Versioned(b"1", 3))
    assert driver.log == [
        *("get /chroot/b", "get /chroot/none", "get /chroot/a"),
        *("answer /chroot/b", "answer /chroot/none", "answer /chroot/a"),
    ]
    driver.log.clear()
    assert opened.children_all(("/none", "/", "/a")) == ((), ("a", "b"), ())
    assert driver.log[:3] == ["children /chroot/none", "children /chroot", "children /chroot/a"]
    assert (opened.get("/a"), opened.get("/none")) == (Versioned(b"1", 3), None)
    assert (opened.children("/"), opened.children("/none")) == (("a", "b"), ())
    driver.connected = False
    with pytest.raises(UnavailableError, match="suspended"):
        opened.get_all(("/a",))
