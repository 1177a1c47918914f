"""Connectivity checks of server addresses, which fail at once where drivers retry for long."""

import socket
import ssl
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from brokers.access import Tls
from pipeline.errors import RefusedError, UnavailableError

REACH_WITHIN_S: Final = 3.0
"""A refused connection fails at once; the timeout is for addresses that drop all packets."""
ALERT_WITHIN_S: Final = 0.2
"""How long to wait for the TLS alert of a server that rejects our certificate, or its absence."""


def require_tls(hosts: str, default_port: int, within_s: float, tls: Tls, server: str) -> None:
    """Check that TLS works, at the first of several addresses that accepts a connection.

    Args:
        hosts: as in a connect string; the scheme of an address is ignored.
        default_port: of an address without one.
        within_s: timeout for all addresses together, at most `REACH_WITHIN_S`.
        tls: trusted CAs and client certificate.
        server: begins the names of the settings: `kafka`.

    Raises:
        RefusedError: one side does not trust the other, or the server does not use TLS.
        UnavailableError: the connection broke.
    """
    ends_at = time.monotonic() + min(within_s, REACH_WITHIN_S)
    for host, port in addresses(hosts, default_port):
        try:
            plain = socket.create_connection((host, port), max(0.1, ends_at - time.monotonic()))
        except OSError:
            continue
        place = f"{server} {host}:{port}"
        try:
            with plain, tls.context().wrap_socket(plain, server_hostname=host) as secured:
                _await_alert(secured)
        except ssl.SSLCertVerificationError as error:
            raise RefusedError(
                f"the certificate of the server is not believed: {error.verify_message}",
                place=place,
                hint=f"{server}.tls.ca must be the authority that it comes from, and it must be "
                f"made out to {host}.",
            ) from error
        except ssl.SSLError as error:
            raise RefusedError(
                f"no encrypted connection: {_words(error)}",
                place=place,
                hint="does it listen for TLS there, and does it ask for a certificate "
                f"({server}.tls.certificate)?",
            ) from error
        except OSError as error:
            raise UnavailableError(
                f"the connection broke when encryption began: {error.strerror or error}",
                place=place,
                hint="does it listen for TLS there?",
            ) from error
        return


def _await_alert(secured: ssl.SSLSocket) -> None:
    """Wait for an alert: in TLS 1.3 a server checks our certificate after our handshake ends."""
    secured.settimeout(ALERT_WITHIN_S)
    with suppress(TimeoutError):
        secured.recv(1)


def connection_problem(hosts: str, default_port: int, within_s: float) -> str:
    """Why no address of `host:port,host2:port` accepts a connection; empty if one does.

    Args:
        hosts: as in a connect string; the scheme of an address is ignored.
        default_port: of an address without one.
        within_s: timeout for all addresses together, at most `REACH_WITHIN_S`.

    Returns:
        The operating system's error at the last address.
    """
    ends_at = time.monotonic() + min(within_s, REACH_WITHIN_S)
    reason = ""
    for host, port in addresses(hosts, default_port):
        try:
            socket.create_connection((host, port), max(0.1, ends_at - time.monotonic())).close()
        except TimeoutError:
            reason = f"{host} does not answer"
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
        else:
            return ""
    return reason


def addresses(hosts: str, default_port: int) -> Iterable[tuple[str, int]]:
    """Host and port of each address of a connect string, without its scheme."""
    for entry in hosts.split(","):
        address = entry.strip().rpartition("://")[2]
        host, colon, port = address.rpartition(":")
        if colon and port.isdecimal():
            yield host.strip("[]"), int(port)
        else:
            yield address.strip("[]"), default_port


def _words(error: ssl.SSLError) -> str:
    """OpenSSL's reason in lower case: `WRONG_VERSION_NUMBER` → `wrong version number`."""
    return (error.reason or str(error)).lower().replace("_", " ")
