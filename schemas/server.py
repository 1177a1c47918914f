"""Schema registry server in a thread of this process."""

import errno
import logging
import resource
import socket
import ssl
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from brokers.ports import holder_of_port
from brokers.versioned_store import VersionedStore
from pipeline.clock import Clock, Deadline
from pipeline.errors import EnvironmentProblem, InputError
from pipeline.names import Znodes
from pipeline.system_clock import SystemClock
from schemas.registry.registry import Registry
from schemas.rest.access import Access
from schemas.rest.app import RegistryApp
from schemas.rest.connection import Timeouts
from schemas.rest.connection_limits import ConnectionLimits, connection_limits
from schemas.rest.serving import HttpServer

READY_WITHIN_S = 10.0
STOP_WITHIN_S = 5.0
_POLL_S = 0.01
_BACKLOG = 2_048
_UNSENT_BYTES_MAX = 128 * 1024
_LOG = logging.getLogger(__name__)
_NOT_OURS = (errno.EADDRNOTAVAIL, errno.EINVAL, errno.EAFNOSUPPORT)
"""Errors of an address that is another machine's, has no network, or an unsupported family."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """Server certificate and private key: PEM files."""

    file: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Guard:
    """Security settings of a server: authorization, TLS, timeouts, connection limit.

    Args:
        access: users and roles; None: no authorization.
        certificate: for TLS; None: no TLS.
        head_within_s: timeout of the TLS handshake, and of the head of a request.
        taken_within_s: a client that reads nothing of its answers for this time is disconnected.
        connections_max: some more are answered with 503, all others closed at once; the limit is
            lower if the process may not open twice as many files.
    """

    access: Access | None = None
    certificate: Certificate | None = None
    head_within_s: float = 10.0
    taken_within_s: float = 30.0
    connections_max: int = 512


OPEN: Final = Guard()


class RegistryServer:
    """HTTP server of a registry in a versioned store.

    Args:
        store: contains the schemas, below `names.registry()`; thread-safe.
        host: the address to listen on.
        port: 0 takes any free port.
        names: the table of paths.
        clock: for the deadlines of start and stop, and the times of requests.
        guard: its security settings.
    """

    def __init__(
        self,
        store: VersionedStore,
        host: str,
        port: int,
        *,
        names: Znodes | None = None,
        clock: Clock | None = None,
        guard: Guard = OPEN,
    ) -> None:
        self._clock = clock or SystemClock()
        self._names = names or Znodes()
        self._store = store
        self._guard = guard
        self._registry: Registry | None = None
        self._app: RegistryApp | None = None
        self._host = host
        self._port = port
        self._server: HttpServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The URL for clients; valid once it has started."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http{'s' if self._guard.certificate else ''}://{host}:{self._port}"

    def start(self) -> None:
        """Listen, and return when requests are answered.

        Raises:
            EnvironmentProblem: the port is taken, or the host is not this machine.
            RetryError: it did not start in time.
        """
        if self._server is not None:
            return
        listener = self._listen()
        self._port = listener.getsockname()[1]
        self._registry = Registry(self._store, self._names.registry())
        try:
            self._app = RegistryApp(self._registry, self._clock, self._guard.access)
            self._serve(listener, self._app)
        except BaseException:
            self.stop()
            listener.close()
            raise

    def _serve(self, listener: socket.socket, app: RegistryApp) -> None:
        timeouts = Timeouts(self._guard.head_within_s, self._guard.taken_within_s)
        server = HttpServer(
            app, listener, self._connection_limits(), timeouts, self._clock, self._tls()
        )
        thread = threading.Thread(target=server.run, name="schema-registry", daemon=True)
        self._server, self._thread = server, thread
        thread.start()
        deadline = Deadline.after(self._clock, READY_WITHIN_S, "starting the schema registry")
        while not server.started.is_set():
            if deadline.passed or not thread.is_alive():
                deadline.check()
                raise EnvironmentProblem("the schema registry did not start", place=self.url)
            self._clock.sleep(_POLL_S)

    def stop(self) -> None:
        """Stop listening, and answer pending requests. A second call does nothing."""
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is not None and thread is not None:
            server.stop()
            thread.join(STOP_WITHIN_S)
        for part in (self._app, self._registry):
            if part is not None:
                part.close()
        self._app = self._registry = None

    def _connection_limits(self) -> ConnectionLimits:
        """The configured connection limit, or a lower one that the process can serve."""
        configured = self._guard.connections_max
        files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files_max == resource.RLIM_INFINITY:
            files_max = sys.maxsize
        limits = connection_limits(configured, files_max)
        if limits.served < configured:
            _LOG.warning(
                "the schema registry takes %d connections at once, not %d: this process may have "
                "%d files open; raise that limit, as with `ulimit -n`",
                limits.served,
                configured,
                files_max,
            )
        return limits

    def _tls(self) -> ssl.SSLContext | None:
        """The SSL context with the server's certificate.

        Raises:
            InputError: a file cannot be read, or is no certificate or key.
        """
        if self._guard.certificate is None:
            return None
        file, key = self._guard.certificate.file, self._guard.certificate.key
        try:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(file, key)
        except (OSError, ssl.SSLError) as error:
            raise InputError(
                f"the certificate or its key cannot be used: {error.strerror or error}",
                place=f"{file}, {key}",
                hint="both have to be PEM; the key without a passphrase, and of this certificate.",
            ) from error
        return context

    def _listen(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        # asyncio sets TCP_NODELAY only for sockets with this protocol; it saves 40 ms per answer.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if sys.platform == "linux":
                # Otherwise the kernel buffers megabytes for a client that reads nothing.
                option = socket.TCP_NOTSENT_LOWAT
                listener.setsockopt(socket.IPPROTO_TCP, option, _UNSENT_BYTES_MAX)
            listener.bind((self._host, self._port))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise self._cannot_listen(error) from error
        return listener

    def _cannot_listen(self, error: OSError) -> EnvironmentProblem:
        """The error about the host, or else about the port."""
        if isinstance(error, socket.gaierror) or error.errno in _NOT_OURS:
            return EnvironmentProblem(
                f"the schema registry cannot listen on host {self._host}: it is not an address of "
                f"this machine ({error.strerror})",
                place=self.url,
                hint="127.0.0.1 serves this machine alone, 0.0.0.0 all of its networks.",
            )
        holder = holder_of_port(self._port) if error.errno == errno.EADDRINUSE else None
        why = f"it is taken by {holder}" if holder else error.strerror
        return EnvironmentProblem(
            f"the schema registry cannot listen on port {self._port}: {why}",
            place=self.url,
            hint="stop what listens there, or choose another port for the registry.",
        )
