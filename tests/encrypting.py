"""A server in front of PostgreSQL that encrypts, since the tests' PostgreSQL was built without.

A client asks for encryption by eight bytes, the answer `S` grants it, and TLS follows:
manual of PostgreSQL, "Message Flow", "SSL Session Encryption".
"""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.certificates import LOOPBACK, Certificate

_REQUEST_BYTES = 8
_WITHIN_S = 30.0


@contextmanager
def encrypting(certificate: Certificate, behind: int) -> Iterator[int]:
    """The port of a server with a certificate, that passes everything on to another port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    with socket.create_server((LOOPBACK, 0)) as listener:
        accepting = threading.Thread(target=_accept, args=(listener, context, behind))
        accepting.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join(_WITHIN_S)


def _accept(listener: socket.socket, context: ssl.SSLContext, behind: int) -> None:
    """One connection after the other, until the listener is shut down."""
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            client.settimeout(_WITHIN_S)
            with client, suppress(OSError):
                client.recv(_REQUEST_BYTES, socket.MSG_WAITALL)
                client.sendall(b"S")
                with (
                    context.wrap_socket(client, server_side=True) as encrypted,
                    socket.create_connection((LOOPBACK, behind), _WITHIN_S) as server,
                ):
                    # One thread for each way; a way that ends, ends the other one.
                    back = threading.Thread(target=_pass_on, args=(server, encrypted))
                    back.start()
                    _pass_on(encrypted, server)
                    back.join(_WITHIN_S)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while content := source.recv(65_536):
            target.sendall(content)
    for one in (source, target):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
