"""A ZooKeeper session whose connection hangs, breaks and is restored."""

import time
import uuid
from collections.abc import Iterator

import pytest

from brokers.embedded.stack import EmbeddedStack
from brokers.versioned_store import Create, Versioned
from brokers.zookeeper import ZooKeeperStore
from pipeline.errors import UnavailableError
from tests.conftest import WaitFor
from tests.faults.relay import Line, Relay

pytestmark = pytest.mark.system

TIMEOUT_S = 1.0
SESSION_S = 4.0
"""The shortest session timeout of a server with ticks of two seconds."""


@pytest.fixture
def relay(embedded_stack: EmbeddedStack) -> Iterator[Relay]:
    """A relay to the stack's ZooKeeper."""
    with Relay(embedded_stack.settings.zookeeper_port) as running:
        yield running


@pytest.fixture
def chroot() -> str:
    """A unique chroot."""
    return f"/outage/{uuid.uuid4().hex}"


@pytest.fixture
def store(relay: Relay, chroot: str) -> Iterator[ZooKeeperStore]:
    """A session through the relay."""
    connect = f"127.0.0.1:{relay.port}{chroot}"
    opened = ZooKeeperStore.connect(connect, TIMEOUT_S, session_timeout_s=SESSION_S)
    yield opened
    opened.close()


@pytest.fixture
def direct(embedded_stack: EmbeddedStack, chroot: str) -> Iterator[ZooKeeperStore]:
    """A session on the same chroot that bypasses the relay."""
    port = embedded_stack.settings.zookeeper_port
    opened = ZooKeeperStore.connect(f"127.0.0.1:{port}{chroot}", 10.0)
    yield opened
    opened.close()


def test_a_call_to_an_unresponsive_server_times_out(relay: Relay, store: ZooKeeperStore) -> None:
    """No call takes longer than its timeout."""
    relay.set(Line.FROZEN)
    began = time.monotonic()
    with pytest.raises(UnavailableError):
        store.get("/a")
    assert time.monotonic() - began < TIMEOUT_S + 1


def test_a_suspended_session_fails_at_once_and_resumes(
    relay: Relay, store: ZooKeeperStore, direct: ZooKeeperStore, wait_for: WaitFor
) -> None:
    """After a short outage the same session continues, with its ephemeral znodes."""
    store.apply((Create("/node", b"me", ephemeral=True),))
    before = store.session
    relay.set(Line.CUT)
    wait_for(lambda: store.suspended, "the session is suspended")
    began = time.monotonic()
    with pytest.raises(UnavailableError, match="suspended"):
        store.apply((Create("/never", b""),))
    assert time.monotonic() - began < TIMEOUT_S / 2
    relay.set(Line.OPEN)
    wait_for(lambda: not store.suspended, "the session resumes")
    assert store.session == before
    assert store.get("/never") is None
    assert direct.get("/node") == Versioned(b"me", 0)


def test_an_expired_session_is_replaced_and_reported(
    relay: Relay, store: ZooKeeperStore, direct: ZooKeeperStore, wait_for: WaitFor
) -> None:
    """After a long outage there is a new session, in which ephemeral znodes are created again."""
    store.apply((Create("/node", b"me", ephemeral=True),))
    before = store.session
    relay.set(Line.CUT)
    wait_for(lambda: direct.get("/node") is None, "the session expires on the server")
    relay.set(Line.OPEN)
    wait_for(lambda: not store.suspended and store.session != before, "a new session")
    store.apply((Create("/node", b"again", ephemeral=True),))
    assert direct.get("/node") == Versioned(b"again", 0)


def test_close_during_an_outage_ends_in_time(relay: Relay, store: ZooKeeperStore) -> None:
    """A process can exit while the server is unreachable."""
    relay.set(Line.CUT)
    began = time.monotonic()
    store.close()
    assert time.monotonic() - began < TIMEOUT_S + 1
