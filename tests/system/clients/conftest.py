"""Fixtures: Confluent's clients in other languages, if installable, and registries."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from brokers.versioned_store import VersionedStore
from brokers.zookeeper import ZooKeeperStore
from schemas.rest.access import Access, Role, User
from schemas.server import Certificate, Guard, RegistryServer
from tests.certificates import LOOPBACK, Authority
from tests.memory_store import MemoryStore, MemoryTree
from tests.system.clients.foreign import Foreign, Served
from tests.system.clients.installing import NotHereError, Program, go_program, node_program

PASSWORD = "sésame: open"
USERS = (User("owner", PASSWORD, {"": Role.ADMIN}), User("guest", PASSWORD, {"cars-": Role.READ}))
ZOOKEEPER_ANSWERS_WITHIN_S = 10.0
StartClient = Callable[[Program, Served], Foreign]


def installed(program: Callable[[Path], Program], jar_cache: Path) -> Program:
    """Install a client; skip the test where Node or Go is missing."""
    try:
        return program(jar_cache.expanduser() / "clients")
    except NotHereError as reason:
        pytest.skip(f"Confluent's client is not tried: {reason}")


@pytest.fixture(scope="session")
def node(jar_cache: Path) -> Program:
    """The client for Node."""
    return installed(node_program, jar_cache)


@pytest.fixture(scope="session")
def go(jar_cache: Path) -> Program:
    """The client for Go."""
    return installed(go_program, jar_cache)


@pytest.fixture(params=["node", "go"])
def program(request: pytest.FixtureRequest) -> Program:
    """Each of the clients."""
    found: Program = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartClient]:
    """Starts clients; they are ended after the test."""
    with ExitStack() as running:

        def one(program: Program, served: Served) -> Foreign:
            log = tmp_path / f"{uuid.uuid4().hex}.log"
            return running.enter_context(Foreign(program, served, log))

        yield one


@pytest.fixture
def in_memory() -> Iterator[Served]:
    """A registry without authentication."""
    with ExitStack() as ending:
        yield Served(serve(MemoryStore(MemoryTree()), Guard(), ending))


@pytest.fixture
def with_logins() -> Iterator[Served]:
    """A registry with authentication."""
    with ExitStack() as ending:
        url = serve(MemoryStore(MemoryTree()), Guard(Access(USERS)), ending)
        yield Served(url, "owner", PASSWORD)


@pytest.fixture
def on_zookeeper(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """A registry on ZooKeeper with authentication and TLS."""
    stack = request.getfixturevalue("embedded_stack")
    chroot = f"{stack.settings.zookeeper_connect}/clients/{uuid.uuid4().hex}"
    authority = Authority(tmp_path / "ca", "those who are believed")
    proof = authority.sign("registry")
    guard = Guard(Access(USERS), Certificate(proof.certificate, proof.key))
    with ExitStack() as ending:
        url = serve(ZooKeeperStore.connect(chroot, ZOOKEEPER_ANSWERS_WITHIN_S), guard, ending)
        yield Served(url, "owner", PASSWORD, str(authority.ca))


@pytest.fixture(params=["in_memory", "with_logins", "on_zookeeper"])
def served(request: pytest.FixtureRequest) -> Served:
    """Each of the registries, empty."""
    found: Served = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def client(program: Program, served: Served, start: StartClient) -> Foreign:
    """Each client at each registry."""
    return start(program, served)


def serve(store: VersionedStore, guard: Guard, ending: ExitStack) -> str:
    """Serve a store until the exit stack closes; returns the URL."""
    ending.callback(store.close)
    server = RegistryServer(store, LOOPBACK, 0, guard=guard)
    ending.callback(server.stop)
    server.start()
    return server.url
