"""The registry as a server in a thread of this process."""

import errno
import socket
import threading

import uvicorn

from brokers.ports import holder_of_port
from brokers.versioned_store import VersionedStore
from pipeline.clock import Clock, Deadline, SystemClock
from pipeline.errors import EnvironmentProblem
from pipeline.names import Znodes
from schemas.registry import Registry
from schemas.rest import create_app
from schemas.store import ZnodeSchemaStore

READY_WITHIN_S = 10.0
STOP_WITHIN_S = 5.0
_POLL_S = 0.01
_BACKLOG = 128
_CONNECTIONS_MAX = 512


class RegistryServer:
    """Serves the schemas of a versioned store on one address.

    Args:
        store: where the schemas lie, below `names.schemas()`; safe between threads.
        host: the address to listen on.
        port: 0 takes any free port.
        names: the table of paths.
        clock: for the deadlines of start and stop.
    """

    def __init__(
        self,
        store: VersionedStore,
        host: str,
        port: int,
        *,
        names: Znodes | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.registry = Registry(ZnodeSchemaStore(store, (names or Znodes()).schemas()))
        self._clock = clock or SystemClock()
        self._host = host
        self._port = port
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where clients find it; known once it has started."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    def start(self) -> None:
        """Listen, and return when requests are answered.

        Raises:
            EnvironmentProblem: the port is taken, or the address is not of this machine.
            RetryError: it did not come up in time.
        """
        if self._server is not None:
            return
        listener = self._listen()
        self._port = listener.getsockname()[1]
        config = uvicorn.Config(
            create_app(self.registry),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            limit_concurrency=_CONNECTIONS_MAX,
            timeout_graceful_shutdown=int(STOP_WITHIN_S) - 1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run,
            kwargs={"sockets": [listener]},
            name="schema-registry",
            daemon=True,
        )
        self._thread.start()
        deadline = Deadline.after(self._clock, READY_WITHIN_S, "starting the schema registry")
        while not self._server.started:
            if deadline.passed or not self._thread.is_alive():
                self.stop()
                deadline.check()
                raise EnvironmentProblem("the schema registry did not start", place=self.url)
            self._clock.sleep(_POLL_S)

    def stop(self) -> None:
        """Answer what is under way, then stop listening. Stopping twice does nothing."""
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is None or thread is None:
            return
        server.should_exit = True
        thread.join(STOP_WITHIN_S)
        if thread.is_alive():
            server.force_exit = True
            thread.join(STOP_WITHIN_S)

    def _listen(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        # Only of a socket that says TCP does asyncio send every answer at once: 40 ms each.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self._host, self._port))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            holder = holder_of_port(self._port) if error.errno == errno.EADDRINUSE else None
            why = f"it is taken by {holder}" if holder else error.strerror
            raise EnvironmentProblem(
                f"the schema registry cannot listen on port {self._port}: {why}",
                place=self.url,
                hint="stop what listens there, or choose another port for the registry.",
            ) from error
        return listener
