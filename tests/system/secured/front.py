"""What stands before a schema registry in many places: https, and a login."""

import base64
import http.client
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.certificates import LOOPBACK, Certificate

WITHIN_S = 10.0


@contextmanager
def front(registry: str, certificate: Certificate, user: str, password: str) -> Iterator[str]:
    """Hand on to a registry what comes with this login; gives the address of the front."""
    wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    behind = urlsplit(registry).netloc

    class Front(BaseHTTPRequestHandler):
        """One request."""

        protocol_version = "HTTP/1.1"

        def _hand_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Authorization") != wanted:
                self._answer(401, b'{"error_code": 401, "message": "Unauthorized"}')
                return
            connection = http.client.HTTPConnection(behind, timeout=WITHIN_S)
            kept = {k: v for k, v in self.headers.items() if k in {"Content-Type", "Accept"}}
            connection.request(self.command, self.path, body, kept)
            answer = connection.getresponse()
            self._answer(answer.status, answer.read())
            connection.close()

        do_GET = do_POST = do_PUT = do_DELETE = _hand_on  # noqa: N815 - names of the library

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing on stderr."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    server = ThreadingHTTPServer((LOOPBACK, 0), Front)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, name="front", daemon=True)
    thread.start()
    try:
        yield f"https://{LOOPBACK}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(WITHIN_S)
