"""Versioned store on ZooKeeper; no other module imports kazoo.

Rules:

1. Every call has one timeout. A call on a suspended session is refused at once, not queued: a
   queued write could be executed long after its caller gave up.
2. The chroot is part of every path that is sent. kazoo's own chroot cannot be created through it.
3. kazoo reconnects for ever, with a short bounded delay. A session that was lost is replaced by a
   new one; `session` then changes, and its users create their ephemeral paths again.
4. With a login, only that user may read or change the created paths.
5. After a timeout it is unknown whether a write was executed. Callers read to find out.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias, TypeVar

from kazoo.client import KazooClient, KazooState, TransactionRequest
from kazoo.exceptions import (
    AuthFailedError,
    BadArgumentsError,
    BadVersionError,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.interfaces import IAsyncResult
from kazoo.protocol.states import KeeperState
from kazoo.retry import KazooRetry
from kazoo.security import make_digest_acl

from brokers import versioned_store as store
from brokers.access import Login, Tls, TlsFiles, read_login
from brokers.reach import connection_problem, require_tls
from brokers.versioned_store import Check, Create, Delete, Operation, Set, Versioned, check_path
from pipeline.errors import (
    BrokenInvariantError,
    InputError,
    MedusaError,
    NotAllowedError,
    RefusedError,
    UnavailableError,
    UsageError,
)
from pipeline.settings import Settings

T = TypeVar("T")

SESSION_TIMEOUT_S: Final = 10.0
"""How long ZooKeeper waits for a silent client before it removes the ephemeral paths."""
RECONNECT_DELAY_S_MAX: Final = 1.0
PORT_MAX: Final = 65535
DEFAULT_PORT: Final = 2181
_HINT: Final = "is it running, and is ZOOKEEPER_CONNECT its address?"
_ANY_VERSION: Final = -1
_IN_FLIGHT_MAX: Final = 500
"""Requests that are sent before the first answer is awaited."""

_LOG: Final = logging.getLogger("medusa.zookeeper")
_LOG.addHandler(logging.NullHandler())
# At lower levels kazoo logs every request with its content: the password, when it logs in.
_LOG.setLevel(logging.INFO)

_TRANSLATION: Final[tuple[tuple[type[Exception], type[MedusaError], str, str], ...]] = (
    (NoNodeError, store.NoSuchPathError, "the path does not exist", ""),
    (NodeExistsError, store.PathExistsError, "the path exists already", ""),
    (BadVersionError, store.VersionConflictError, "the value was changed since it was read", ""),
    (NotEmptyError, store.NotEmptyError, "the path has children", ""),
    (
        NoChildrenForEphemeralsError,
        BrokenInvariantError,
        "an ephemeral path has no children",
        "",
    ),
    (BadArgumentsError, BrokenInvariantError, "ZooKeeper does not accept the request", ""),
    (
        NoAuthError,
        NotAllowedError,
        "ZooKeeper does not allow this to us",
        "check zookeeper.user and zookeeper.password, and the access control list of the path.",
    ),
    (InvalidACLError, RefusedError, "ZooKeeper does not accept the access control list", ""),
    (
        AuthFailedError,
        NotAllowedError,
        "ZooKeeper does not accept our credentials",
        "check zookeeper.user and zookeeper.password.",
    ),
    (KazooTimeoutError, UnavailableError, "ZooKeeper did not answer in time", ""),
    (KazooException, UnavailableError, "the connection to ZooKeeper was lost", ""),
)
"""The first match applies. All other errors are about connection and session."""


@dataclass(frozen=True, slots=True)
class ZooKeeperServers:
    """Addresses of a ZooKeeper ensemble, with credentials and TLS settings.

    Args:
        connect: hosts with chroot: `host:2181,host2:2181/medusa`.
        login: for the scheme `digest`; None: every client may read and change created paths.
        tls: None: the connection is not encrypted.
    """

    connect: str
    login: Login | None = None
    tls: Tls | None = None


Ensemble: TypeAlias = ZooKeeperServers | str
"""The ensemble that a store connects to; a plain text: without authentication and encryption."""


def zookeeper_servers(settings: Settings) -> ZooKeeperServers:
    """The ZooKeeper of an installation; secrets are resolved, files are read.

    Raises:
        InputError: a setting is missing or unused, a secret cannot be resolved, or a file has the
            wrong content.
    """
    files = TlsFiles(
        "zookeeper",
        settings.zookeeper_tls_ca,
        settings.zookeeper_tls_certificate,
        settings.zookeeper_tls_key,
        settings.zookeeper_tls_key_password,
    )
    if files.any and not files.ca:
        raise InputError(
            "zookeeper.tls.ca is missing",
            place="settings",
            hint="with it, connections to ZooKeeper are encrypted; without it, they are not.",
        )
    return ZooKeeperServers(
        settings.zookeeper_connect,
        read_login("zookeeper", settings.zookeeper_user, settings.zookeeper_password),
        files.read() if files.any else None,
    )


def translated(error: Exception, place: str) -> MedusaError:
    """The error of ours for an error of kazoo; raise it `from` the original."""
    for kind, ours, words, hint in _TRANSLATION:
        if isinstance(error, kind):
            detail = "" if ours is not UnavailableError else f" ({type(error).__name__})"
            return ours(f"{words}{detail}", place=place, hint=hint)
    return BrokenInvariantError(f"an unexpected error of ZooKeeper: {error}", place=place)


def split_connect_string(connect: str) -> tuple[str, str]:
    """Split `host:2181,host2:2181/chroot` into hosts and chroot; no chroot is the empty string.

    >>> split_connect_string("a:2181,b:2181/medusa/x")
    ('a:2181,b:2181', '/medusa/x')
    """
    hosts, slash, chroot = connect.partition("/")
    entries = [host.strip() for host in hosts.split(",")]
    for entry in entries:
        name, colon, port = entry.rpartition(":")
        if not entry or (colon and (not name or not port.isdigit() or int(port) > PORT_MAX)):
            raise UsageError(
                f"{entry!r} is not a host and port",
                place=f"zookeeper.connect = {connect}",
                hint="write host:port, more of them with commas, then a chroot such as /medusa.",
            )
    path = (slash + chroot).rstrip("/")
    if path:
        check_path(path)
    return ",".join(entries), path


class ZooKeeperStore:
    """One session: a `VersionedStore`. Create it with `connect`. Thread-safe."""

    def __init__(self, client: KazooClient, hosts: str, chroot: str, timeout_s: float) -> None:
        self._client = client
        self._hosts = hosts
        self._chroot = chroot
        self._timeout_s = timeout_s
        self._session = 1
        self._closed = False
        client.add_listener(self._on_state)

    @classmethod
    def connect(
        cls, ensemble: Ensemble, timeout_s: float, session_timeout_s: float = SESSION_TIMEOUT_S
    ) -> Self:
        """Open a session and create the chroot if it is missing.

        Args:
            ensemble: the servers.
            timeout_s: timeout of connecting, and later of every call.
            session_timeout_s: how long the session outlives a lost connection.

        Raises:
            UnavailableError: no server opened a session in time.
            RefusedError: the connection cannot be encrypted, or the login is not accepted.
            UsageError: the connect string cannot be read.
        """
        access = ZooKeeperServers(ensemble) if isinstance(ensemble, str) else ensemble
        hosts, chroot = split_connect_string(access.connect)
        problem = connection_problem(hosts, DEFAULT_PORT, timeout_s)
        if problem:
            raise UnavailableError(
                f"no ZooKeeper server can be reached: {problem}",
                place=f"ZooKeeper {hosts}",
                hint=_HINT,
            )
        if access.tls is not None:
            require_tls(hosts, DEFAULT_PORT, timeout_s, access.tls, "zookeeper")
        retry = KazooRetry(
            max_tries=-1, delay=0.05, backoff=2, max_jitter=0.2, max_delay=RECONNECT_DELAY_S_MAX
        )
        client = KazooClient(
            hosts, session_timeout_s, connection_retry=retry, logger=_LOG, **_kazoo_options(access)
        )
        opened = cls(client, hosts, chroot, timeout_s)
        client.start_async().wait(timeout_s)
        if not client.connected:
            rejected = client.client_state == KeeperState.AUTH_FAILED
            opened.close()
            if rejected:
                raise translated(AuthFailedError(), f"ZooKeeper {hosts}")
            raise UnavailableError(
                f"no ZooKeeper server gave us a session within {timeout_s:g} s",
                place=f"ZooKeeper {hosts}",
                hint=_HINT,
            )
        try:
            opened.make_parents("/")
        except MedusaError:
            opened.close()
            raise
        return opened

    def get(self, path: str) -> Versioned | None:
        """The value at a path; None if the path does not exist."""
        return self.get_all((path,))[0]

    def get_all(self, paths: Sequence[str]) -> tuple[Versioned | None, ...]:
        """The values at many paths, in their order; not an atomic snapshot."""
        answers = self._request_all(self._client.get_async, paths)
        return tuple(one and Versioned(one[0] or b"", one[1].version) for one in answers)

    def sync(self) -> None:
        """Wait until later reads contain every write that any client got acknowledged before."""
        self._check_usable()
        self._wait(self._client.sync_async(self._full("/")), "/")

    def children(self, path: str) -> tuple[str, ...]:
        """Names directly below a path, sorted; empty if the path does not exist."""
        return self.children_all((path,))[0]

    def children_all(self, paths: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The children of many paths, in their order; not an atomic snapshot."""
        answers = self._request_all(self._client.get_children_async, paths)
        return tuple(tuple(sorted(names or ())) for names in answers)

    def make_parents(self, path: str) -> None:
        """Create the path and its parents, as far as they are missing, with empty values."""
        full = self._full(path)
        self._check_usable()
        if self._wait(self._client.exists_async(full), path) is not None:
            return
        done = ""
        for part in full.strip("/").split("/"):
            done = f"{done}/{part}"
            if self._wait(self._client.exists_async(done), path) is not None:
                continue
            try:
                self._wait(self._client.create_async(done, b""), path)
            except store.PathExistsError:
                continue  # another client created it between our two calls

    def apply(self, operations: tuple[Operation, ...]) -> None:
        """Execute all operations or none, in one atomic step."""
        store.check_step(operations)
        self._check_usable()
        if not operations:
            return
        transaction = self._client.transaction()
        for operation in operations:
            self._add(transaction, operation)
        results = self._wait(transaction.commit_async(), operations[0].path)
        for operation, result in zip(operations, results, strict=True):
            # These two are the results of the other operations; the failed one has the reason.
            if isinstance(result, Exception) and not isinstance(
                result, RolledBackError | RuntimeInconsistency
            ):
                raise translated(result, operation.path) from result

    @property
    def suspended(self) -> bool:
        """Whether the session is in doubt, so that no decision may depend on values read before."""
        return not self._client.connected

    @property
    def session(self) -> int:
        """Changes when the session was lost: its ephemeral paths are gone and must be recreated."""
        return self._session

    def close(self) -> None:
        """End the session, which removes its ephemeral paths. A second call does nothing.

        Waits for the server for at most the store's timeout; after that the session expires.
        """
        if self._closed:
            return
        self._closed = True
        stopper = threading.Thread(target=self._stop, name="zookeeper-stop", daemon=True)
        stopper.start()
        stopper.join(self._timeout_s)

    def _stop(self) -> None:
        try:
            self._client.stop()
            self._client.close()
        except (KazooException, OSError) as error:
            _LOG.warning("the session did not end cleanly: %s", error)

    def _on_state(self, state: str) -> None:
        if state == KazooState.LOST and not self._closed:
            self._session += 1

    def _full(self, path: str) -> str:
        check_path(path)
        return self._chroot + path if path != "/" else self._chroot or "/"

    def _check_usable(self) -> None:
        if self._closed:
            raise UnavailableError("the session is closed", place=f"ZooKeeper {self._hosts}")
        if self.suspended:
            raise UnavailableError(
                "the connection to ZooKeeper is suspended",
                place=f"ZooKeeper {self._hosts}",
                hint="it goes on by itself when a server answers again.",
            )

    def _request_all(
        self, send: Callable[[str], "IAsyncResult[T]"], paths: Sequence[str]
    ) -> Iterator[T | None]:
        """The answers for many paths, in their order; None where the path does not exist."""
        for first in range(0, len(paths), _IN_FLIGHT_MAX):
            some = paths[first : first + _IN_FLIGHT_MAX]
            full = [self._full(path) for path in some]
            self._check_usable()
            asked = [send(path) for path in full]
            for path, answer in zip(some, asked, strict=True):
                try:
                    yield self._wait(answer, path)
                except store.NoSuchPathError:
                    yield None

    def _wait(self, result: "IAsyncResult[T]", path: str) -> T:
        try:
            return result.get(timeout=self._timeout_s)
        except (KazooException, KazooTimeoutError) as error:
            raise translated(error, f"ZooKeeper {self._hosts}, {self._chroot}{path}") from error

    def _add(self, transaction: TransactionRequest, operation: Operation) -> None:
        path = self._full(operation.path)
        match operation:
            case Create(_, value, ephemeral):
                transaction.create(path, value, ephemeral=ephemeral)
            case Set(_, value, version):
                transaction.set_data(path, value, _ANY_VERSION if version is None else version)
            case Check(_, version):
                transaction.check(path, version)
            case Delete(_, version):
                transaction.delete(path, _ANY_VERSION if version is None else version)


def _kazoo_options(ensemble: ZooKeeperServers) -> dict[str, Any]:
    """Authentication and encryption as options of kazoo."""
    options: dict[str, Any] = {}
    login, tls = ensemble.login, ensemble.tls
    if login is not None:
        user, password = login.user, login.password.reveal()
        options["auth_data"] = [("digest", f"{user}:{password}")]
        options["default_acl"] = [make_digest_acl(user, password, all=True)]
    if tls is not None:
        options |= {"use_ssl": True, "verify_certs": True, "check_hostname": True}
        options |= {"ca": str(tls.ca.path)} if tls.ca else {}
    if tls is not None and tls.identity is not None:
        options |= {
            "certfile": str(tls.identity.certificate.path),
            "keyfile": str(tls.identity.key.path),
            "keyfile_password": tls.identity.key_password.reveal,
        }
    return options
