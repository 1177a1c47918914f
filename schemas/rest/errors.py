"""HTTP errors: status, error code and body. Pure."""

import json
from http import HTTPStatus
from typing import Final

from pipeline.errors import MedusaError, RefusedError, RetryError, SchemaError, UnavailableError
from schemas.registry.refused import RegistryRefusal
from schemas.rest.messages import Header

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_NUMBERS: Final[tuple[tuple[type[MedusaError], int, int], ...]] = (
    (SchemaError, 422, 42201),
    (RefusedError, 422, 42209),
    (UnavailableError, 500, 50001),
    (RetryError, 500, 50002),
)
"""Status and code by class; the first match applies. The store refuses requests for their size."""


class HttpError(Exception):
    """A request that is answered with a status other than 200."""

    def __init__(
        self,
        status: int,
        code: int | None = None,
        message: str = "",
        headers: tuple[Header, ...] = (),
    ) -> None:
        super().__init__(message)
        self.headers = headers
        self.status = status
        self.code = status if code is None else code
        self.message = message or f"HTTP {status} {HTTPStatus(status).phrase}"

    @property
    def body(self) -> bytes:
        """The JSON body of the answer."""
        value = {"error_code": self.code, "message": self.message}
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def http_error(error: MedusaError) -> HttpError:
    """The HTTP error for one of our errors."""
    if isinstance(error, RegistryRefusal):
        return HttpError(error.status, error.number, error.message)
    found = ((status, code) for kind, status, code in _NUMBERS if isinstance(error, kind))
    status, code = next(found, (500, 500))
    message = error.message if code != HTTPStatus.INTERNAL_SERVER_ERROR else "Internal Server Error"
    return HttpError(status, code, message)
