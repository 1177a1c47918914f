"""Whether anybody listens at an address: known at once, where drivers try for long."""

import socket
import time
from collections.abc import Iterable
from typing import Final

REACH_WITHIN_S: Final = 3.0
"""An address that refuses says so at once; one that swallows everything is given up after this."""


def why_nobody_listens(hosts: str, default_port: int, within_s: float) -> str:
    """Try `host:port,host2:port` one after the other; empty as soon as one accepts a connection.

    Args:
        hosts: as in a connect string; a scheme before an address is left out.
        default_port: of an address without one.
        within_s: for all of them together, at most `REACH_WITHIN_S`.

    Returns:
        Why the last one could not be reached, in the system's words.
    """
    ends_at = time.monotonic() + min(within_s, REACH_WITHIN_S)
    reason = ""
    for host, port in _addresses(hosts, default_port):
        try:
            socket.create_connection((host, port), max(0.1, ends_at - time.monotonic())).close()
        except TimeoutError:
            reason = f"{host} does not answer"
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
        else:
            return ""
    return reason


def _addresses(hosts: str, default_port: int) -> Iterable[tuple[str, int]]:
    for entry in hosts.split(","):
        address = entry.strip().rpartition("://")[2]
        host, colon, port = address.rpartition(":")
        if colon and port.isdecimal():
            yield host.strip("[]"), int(port)
        else:
            yield address.strip("[]"), default_port
