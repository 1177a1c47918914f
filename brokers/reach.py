"""Whether an address can be talked to: known at once, where drivers try for long."""

import socket
import ssl
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from brokers.access import Tls
from pipeline.errors import RefusedError, UnavailableError

REACH_WITHIN_S: Final = 3.0
"""An address that refuses says so at once; one that swallows everything is given up after this."""
ALERT_WITHIN_S: Final = 0.2
"""How long a server may take to object to what we showed of ourselves, or did not show."""


def require_tls(hosts: str, default_port: int, within_s: float, tls: Tls, server: str) -> None:
    """Try an encrypted connection to the first address of several that accepts one.

    Args:
        hosts: as in a connect string; a scheme before an address is left out.
        default_port: of an address without one.
        within_s: for all of them together, at most `REACH_WITHIN_S`.
        tls: whom we believe, and what we show.
        server: begins the names of the settings: `kafka`.

    Raises:
        RefusedError: one of the two does not believe the other, or the server does not encrypt.
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
                _await_objection(secured)
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


def _await_objection(secured: ssl.SSLSocket) -> None:
    """With TLS 1.3 a server looks at our certificate when the handshake is over for us."""
    secured.settimeout(ALERT_WITHIN_S)
    with suppress(TimeoutError):
        secured.recv(1)


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
    """Host and port of each address of a connect string, without a scheme before it."""
    for entry in hosts.split(","):
        address = entry.strip().rpartition("://")[2]
        host, colon, port = address.rpartition(":")
        if colon and port.isdecimal():
            yield host.strip("[]"), int(port)
        else:
            yield address.strip("[]"), default_port


def _words(error: ssl.SSLError) -> str:
    """OpenSSL's reason as people write it: `WRONG_VERSION_NUMBER` → `wrong version number`."""
    return (error.reason or str(error)).lower().replace("_", " ")
