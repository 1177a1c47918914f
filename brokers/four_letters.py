"""Version of a ZooKeeper server, read with the four-letter command `srvr`."""

import re
import socket
from typing import Final

from brokers.reach import addresses
from brokers.zookeeper import DEFAULT_PORT, ZooKeeperServers, split_connect_string

_ANSWER_BYTES_MAX: Final = 65_536
_VERSION: Final = re.compile(r"^Zookeeper version: ([0-9][0-9.]*[0-9])", re.MULTILINE)


def zookeeper_version(ensemble: ZooKeeperServers, within_s: float) -> str:
    """The version of the first server, such as `3.9.5`; empty if its answer contains none.

    Raises:
        OSError: the server does not answer.
    """
    hosts, _ = split_connect_string(ensemble.connect)
    host, port = next(iter(addresses(hosts, DEFAULT_PORT)))
    with socket.create_connection((host, port), within_s) as plain:
        plain.settimeout(within_s)
        if ensemble.tls is None:
            return _srvr_version(plain)
        with ensemble.tls.context().wrap_socket(plain, server_hostname=host) as secured:
            return _srvr_version(secured)


def _srvr_version(connection: socket.socket) -> str:
    connection.sendall(b"srvr")
    found = b""
    while len(found) < _ANSWER_BYTES_MAX:
        piece = connection.recv(4096)
        if not piece:
            break
        found += piece
    version = _VERSION.search(found.decode("utf-8", errors="replace"))
    return version[1] if version else ""
