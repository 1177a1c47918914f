"""The connection on which the thread of a query calls Python.

Java opens one for each thread that calls Python, and keeps it when the thread has ended, with its
socket and the Python thread at the other end: each query that was ever run would cost these.
"""

import logging
from typing import Any, Final

from pyspark.sql import SparkSession

_CLIENT: Final = "py4j.CallbackClient"

_log = logging.getLogger(__name__)


class CallbackConnection:
    """Of the thread of one query.

    Args:
        spark: the query's session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - py4j itself is needed
        self._ports: set[int] = set()

    def note(self) -> None:
        """Note the connection; to be called by the thread of the query, inside each batch."""
        mine = self._gateway._gateway_client.get_thread_connection()  # noqa: SLF001 - the same
        if mine is not None and mine.socket is not None:
            self._ports.add(mine.socket.getpeername()[1])

    def close(self) -> None:
        """Close it, once the thread of the query has ended. Never raises."""
        try:
            self._close()
        except Exception as error:  # noqa: BLE001 - mostly Java has ended, and with it the connection
            _log.debug("the connection of a query is not closed: %s", error)

    def _close(self) -> None:
        client = self._gateway.java_gateway_server.getCallbackClient()
        kind = client.getClass()
        while str(kind.getName()) != _CLIENT:
            kind = kind.getSuperclass()
        connections, lock = (_field(client, kind, name) for name in ("connections", "lock"))
        lock.lock()
        try:
            idle = list(connections.toArray())
            found = [one for one in idle if one.getSocket().getLocalPort() in self._ports]
            for one in found:
                connections.remove(one)
        finally:
            lock.unlock()
        for one in found:
            one.shutdown()


def _field(of: Any, kind: Any, name: str) -> Any:
    field = kind.getDeclaredField(name)
    field.setAccessible(True)
    return field.get(of)
