"""HTTP transport to a schema registry: address, authentication, deadlines, retries, errors.

Each call has one deadline for all its attempts, and raises errors of ours only. A 404 means "does
not exist" only with a registry's own error code: a wrong address or a proxy must never make a
record appear undecodable.
"""

import ipaddress
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

import httpx

from brokers.access import Login, Tls, TlsFiles, read_login
from pipeline.clock import Clock, Deadline
from pipeline.errors import (
    InputError,
    MedusaError,
    NotAllowedError,
    RefusedError,
    SchemaError,
    UnavailableError,
)
from pipeline.settings import Settings
from pipeline.system_clock import SystemClock
from schemas.json_value import Json, JsonObject
from schemas.outside import of_type, read_json

ATTEMPTS_MAX = 4
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
"""The longest list of the largest registries takes a small part of it."""
_REDIRECTS_MAX: Final = 5
_DEFAULT_CONTEXT: Final = "/contexts/."
"""Redundant at the end of an address; HTTP clients would remove a path segment `.`."""
_PAUSES_S = (0.1, 0.3, 0.9)
_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_HEADERS = {"Accept": f"{_MEDIA_TYPE}, application/json", "Content-Type": _MEDIA_TYPE}
_TRY_AGAIN = {429, 500, 502, 503, 504}
_NOT_FOUND = {40401, 40402, 40403, 40404, 40406, 40408, 40409}
"""The registry's own codes for what does not exist, is deleted already, or is not configured; a
plain 404 may come from another server."""
_REFUSALS = {
    401: ("does not accept our credentials", "check registry.user and registry.password."),
    403: ("does not allow this to us", "ask its administrator for the right, for registry.user."),
}
_NO_SUCH_ROUTE = {404, 405}
_STATE_HINTS = {
    40405: "delete the subject first, then permanently.",
    40407: "delete the version first, then permanently.",
    42205: "`medusa schema mode SUBJECT` shows what may be written there, and changes it.",
    42206: "delete first what refers to it; `medusa schema delete --dry-run` names that.",
    42207: "the id belongs to another schema there.",
}
_HINT = "is the registry running, and is its address right (--registry, SCHEMA_REGISTRY_URL)?"


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """Address of a schema registry, with credentials and TLS settings.

    Args:
        url: its base address.
        login: None: the credentials in the address, if it has any.
        tls: None: for https, the default CAs.
    """

    url: str
    login: Login | None = None
    tls: Tls | None = None


Address: TypeAlias = RegistryAddress | str
"""The registry that a client connects to; a plain text: without credentials and TLS settings."""


def registry_address(settings: Settings) -> RegistryAddress:
    """The registry of an installation; secrets are resolved, files are read.

    Raises:
        InputError: a setting is missing or unused, a secret cannot be resolved, or a file has the
            wrong content.
    """
    files = TlsFiles(
        "registry",
        settings.registry_tls_ca,
        settings.registry_tls_certificate,
        settings.registry_tls_key,
        settings.registry_tls_key_password,
    )
    if files.any and urlsplit(settings.registry_url).scheme != "https":
        raise InputError(
            "registry.tls is set, but registry.url is no https:// address",
            place="settings",
            hint="write https:// there, or leave registry.tls out.",
        )
    return RegistryAddress(
        settings.registry_url,
        read_login("registry", settings.registry_user, settings.registry_password),
        files.read() if files.any else None,
    )


V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Answer:
    """A registry's answer: its HTTP status and JSON body."""

    status: int
    value: Json

    @property
    def code(self) -> int:
        """The registry's own error code; 0 if there is none."""
        code = self.value.get("error_code") if isinstance(self.value, dict) else 0
        return code if isinstance(code, int) else 0

    @property
    def message(self) -> str:
        """The registry's error message."""
        return str(self.value.get("message", "")) if isinstance(self.value, dict) else ""


class NotARegistryError(UnavailableError):
    """A server answers, but not as a registry, or as one that does not support the request."""


class ConflictError(SchemaError):
    """The registry's answer 409 with its message; the client requests the reasons."""


class Transport:
    """Sends requests to one registry. Thread-safe.

    Args:
        address: the registry's; user and password may be part of a URL.
        timeout_s: timeout of a call, including retries.
        transport: replaces the HTTP transport in tests.
        clock: for deadlines and pauses.
    """

    def __init__(
        self,
        address: Address,
        timeout_s: float,
        *,
        transport: httpx.BaseTransport | None,
        clock: Clock | None,
    ) -> None:
        access = RegistryAddress(address) if isinstance(address, str) else address
        url, login = access.url, access.login
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise RefusedError(
                f"{_without_password(url)!r} is not an address of a schema registry",
                hint="it begins with http:// or https:// and a host.",
            )
        self.url = _without_password(url)
        self.place = f"schema registry {self.url}"
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._http = httpx.Client(
            base_url=url.rstrip("/").removesuffix(_DEFAULT_CONTEXT),
            headers=_HEADERS,
            timeout=timeout_s,
            transport=transport,
            auth=httpx.BasicAuth(login.user, login.password.reveal()) if login else None,
            verify=access.tls.context() if access.tls else True,
            trust_env=not _is_loopback(parts.hostname),  # no proxy reaches our own loopback
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def ask(self, method: str, path: str, body: Mapping[str, Json] | None = None) -> Answer | None:
        """Send a request and return the answer; None if the registry does not have the object.

        Raises:
            ConflictError: a schema is incompatible.
            SchemaError: the registry rejects a schema.
            RefusedError: the registry's state, or our rights, do not allow the request.
            UnavailableError: no registry answers in time.
        """
        answer = self._send(method, path, body)
        if answer.status in {httpx.codes.OK, httpx.codes.NO_CONTENT}:
            return answer
        if answer.status == httpx.codes.NOT_FOUND and answer.code in _NOT_FOUND:
            return None
        if answer.status == httpx.codes.CONFLICT:
            raise ConflictError(answer.message, place=self.place)
        if answer.code in _STATE_HINTS:
            raise RefusedError(
                f"the registry refuses it: {answer.message}",
                place=self.place,
                hint=_STATE_HINTS[answer.code],
            )
        if answer.status == httpx.codes.UNPROCESSABLE_ENTITY:
            raise SchemaError(f"the registry refuses it: {answer.message}", place=self.place)
        if answer.status in _REFUSALS:
            words, hint = _REFUSALS[answer.status]
            raise NotAllowedError(
                f"the registry {words} ({answer.status} {answer.message}".rstrip() + ")",
                place=self.place,
                hint=hint,
            )
        what = f"answers {answer.status} {answer.message}".rstrip()
        if answer.status in _NO_SUCH_ROUTE:
            what += f" to {method} {path.partition('?')[0]}"
            raise self.not_a_registry(what, f"{_HINT} An older registry may not have this route.")
        raise self.not_a_registry(what)

    def _send(self, method: str, path: str, body: Mapping[str, Json] | None) -> Answer:
        """Send a request, with retries until the deadline. All requests are idempotent."""
        deadline = Deadline.after(self._clock, self._timeout_s, "asking the schema registry")
        problem: MedusaError | None = None
        for attempt in range(ATTEMPTS_MAX):
            if attempt:
                self._clock.sleep(min(_PAUSES_S[attempt - 1], deadline.remaining_s()))
            if deadline.passed and problem is not None:
                break
            try:
                answer = self._send_once(method, path, body, deadline)
            except NotARegistryError:
                raise
            except UnavailableError as error:
                problem = error
                continue
            if answer.status not in _TRY_AGAIN:
                return answer
            message = f"the registry answers {answer.status} {answer.message}".rstrip()
            problem = UnavailableError(message, place=self.place, hint=_HINT)
        raise problem or UnavailableError("no answer", place=self.place, hint=_HINT)

    def _send_once(
        self, method: str, path: str, body: Mapping[str, Json] | None, deadline: Deadline
    ) -> Answer:
        try:
            with self._opened(method, path, body, deadline) as response:
                content = self._content(response, deadline)
        except httpx.InvalidURL as error:
            message = f"the registry cannot be asked for it: {error}"
            raise SchemaError(message, place=self.place) from error
        except httpx.HTTPError as error:
            reason = _certificate_problem(error)
            if reason is not None:
                raise NotAllowedError(
                    f"the certificate of the registry is not believed: {reason}",
                    place=self.place,
                    hint="registry.tls.ca must be the authority that it comes from.",
                ) from error
            words = str(error) or type(error).__name__
            raise UnavailableError(
                f"the registry does not answer: {words}", place=self.place, hint=_HINT
            ) from error
        try:
            return Answer(response.status_code, read_json(content))
        except ValueError:
            return Answer(response.status_code, None)

    @contextmanager
    def _opened(
        self, method: str, path: str, body: Mapping[str, Json] | None, deadline: Deadline
    ) -> Iterator[httpx.Response]:
        """Send a request, follow redirects, and stream the response."""
        content = None if body is None else json.dumps(body, allow_nan=False)
        timeout_s = max(deadline.remaining_s(), 0.05)
        request = self._http.build_request(method, path, content=content, timeout=timeout_s)
        response = self._http.send(request, stream=True)
        try:
            for _ in range(_REDIRECTS_MAX):
                if response.next_request is None or deadline.passed:
                    break
                response.close()
                # The request has the credentials already, unless it goes to another host.
                response = self._http.send(response.next_request, auth=None, stream=True)
            yield response
        finally:
            response.close()

    def _content(self, response: httpx.Response, deadline: Deadline) -> bytes:
        """Read the body of a response, up to the deadline and the size limit.

        The timeout of the connection applies to each piece; there may be many.
        """
        found = bytearray()
        for piece in response.iter_bytes():
            found += piece
            if len(found) > ANSWER_BYTES_MAX:
                raise self.not_a_registry(f"answers with more than {ANSWER_BYTES_MAX} bytes")
            if deadline.passed:
                raise UnavailableError(
                    f"the registry did not answer in full within {self._timeout_s:g} s",
                    place=self.place,
                    hint=_HINT,
                )
        return bytes(found)

    def object_of(self, answer: Answer, **types: type) -> JsonObject:
        """The answer, if it is an object that has these keys with values of these types."""
        return self.part_of(answer.value, **types)

    def part_of(self, value: Json, **types: type) -> JsonObject:
        """A part of an answer, if it is an object with such values."""
        if not isinstance(value, dict) or any(
            not of_type(value.get(key), kind) for key, kind in types.items()
        ):
            raise self.not_a_registry("does not answer as a schema registry does")
        return value

    def list_of(self, answer: Answer, kind: type[V]) -> list[V]:
        """The answer, if it is a list of values of this type."""
        listed = answer.value if isinstance(answer.value, list) else [None]
        found = [item for item in listed if of_type(item, kind) and isinstance(item, kind)]
        if len(found) < len(listed):
            raise self.not_a_registry("does not answer as a schema registry does")
        return found

    def not_a_registry(self, what: str, hint: str = _HINT) -> NotARegistryError:
        """The error about a server that does not answer as a registry."""
        return NotARegistryError(f"the server {what}", place=self.place, hint=hint)


def _without_password(url: str) -> str:
    before, separator, rest = url.rpartition("@")
    scheme = before.partition("://")[0]
    return f"{scheme}://{rest}" if separator else url


def _certificate_problem(error: BaseException) -> str | None:
    """Why a certificate is not trusted, if that is the cause of an error of httpx."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause.verify_message if cause is not None else None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
