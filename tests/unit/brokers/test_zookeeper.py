"""What of the ZooKeeper store needs no server."""

import logging
import time

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
def test_hosts_and_chroot_are_told_apart(connect: str, expected: tuple[str, str]) -> None:
    """The usual ZooKeeper connect string is understood."""
    assert split_connect_string(connect) == expected


@pytest.mark.parametrize("connect", ["", "/x", "a:b", "a:99999", ":2181", "a:1,,b:2"])
def test_what_is_not_a_connect_string_is_a_usage_error(connect: str) -> None:
    """The error shows the setting and what it should look like."""
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
def test_errors_of_the_driver_become_ours(error: Exception, kind: type[MedusaError]) -> None:
    """The table gives every error a kind, and the place is kept."""
    found = translated(error, "/some/path")
    assert type(found) is kind
    assert found.place == "/some/path"


def test_the_driver_tells_nothing_of_requests(caplog: pytest.LogCaptureFixture) -> None:
    """One of them holds the password, however much a node is asked to say."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("medusa.zookeeper").debug("Sending request: Auth(auth='me:geheim')")
    assert "geheim" not in caplog.text


def test_half_of_what_encrypts_is_told() -> None:
    """It is the authority that says that connections are encrypted."""
    settings = combine((("test", {"zookeeper.tls.key": "key.pem"}),))
    with pytest.raises(InputError, match=r"zookeeper\.tls\.ca is missing"):
        zookeeper_servers(settings)


def test_no_server_is_unavailable_within_the_limit() -> None:
    """Connecting to nothing ends in time and names the address."""
    port = free_port()
    began = time.monotonic()
    with pytest.raises(UnavailableError, match=str(port)):
        ZooKeeperStore.connect(f"127.0.0.1:{port}/medusa", 0.5)
    assert time.monotonic() - began < 5
