"""A client of a schema registry: ours, or anyone's that speaks Confluent's REST interface.

Ids, and what was registered or found, never change in a registry, so they are cached; what does not
exist is asked for again each time. A 404 counts as "no such schema" only with a registry's own
error code: a wrong address or a proxy must never make a record look undecodable.
"""

import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote, urlsplit

import httpx

from brokers.access import Login, Tls, TlsFiles, read_login
from pipeline.clock import Clock, Deadline, SystemClock
from pipeline.errors import InputError, MedusaError, RefusedError, SchemaError, UnavailableError
from pipeline.ids import SchemaId, SchemaVersion, Subject
from pipeline.settings import Settings
from schemas.avro import AvroSchema, parse
from schemas.cache import BoundedCache
from schemas.canonical import content_key
from schemas.records import IncompatibleSchemaError, RegisteredSchema

ATTEMPTS_MAX = 4
_PAUSES_S = (0.1, 0.3, 0.9)
_CACHE_ENTRIES_MAX = 2048
_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_HEADERS = {"Accept": f"{_MEDIA_TYPE}, application/json", "Content-Type": _MEDIA_TYPE}
_TRY_AGAIN = {429, 500, 502, 503, 504}
_NOT_FOUND = {40401, 40402, 40403}
_REFUSALS = {
    401: ("does not accept our credentials", "check registry.user and registry.password."),
    403: ("does not allow this to us", "ask whoever runs it for the right, for registry.user."),
}
_HINT = "is the registry running, and is SCHEMA_REGISTRY_URL its address?"


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """A schema registry, and how to get in.

    Args:
        url: its base address.
        login: None: what the address holds, if it holds one.
        tls: None: for https, the authorities that are usually believed.
    """

    url: str
    login: Login | None = None
    tls: Tls | None = None


Address: TypeAlias = RegistryAddress | str
"""Where a client connects to: a text alone means an address with nothing more to know."""


def registry_address(settings: Settings) -> RegistryAddress:
    """The registry of an installation; secrets are resolved, files are read.

    Raises:
        InputError: a setting is missing or without use, a secret is not where it should be, or a
            file is not what it should be.
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


@dataclass(frozen=True, slots=True)
class _Answer:
    """A registry's answer: its HTTP status and JSON body."""

    status: int
    value: Any

    @property
    def code(self) -> int:
        """The registry's own error code; 0 where there is none."""
        code = self.value.get("error_code") if isinstance(self.value, dict) else 0
        return code if isinstance(code, int) else 0

    @property
    def message(self) -> str:
        """What the registry says about an error."""
        return str(self.value.get("message", "")) if isinstance(self.value, dict) else ""


class RegistryClient:
    """Finds and registers schemas. Safe between threads.

    Args:
        address: the registry's; user and password may be part of a URL.
        timeout_s: for a whole call, with all its attempts.
        transport: another way to send requests, for tests.
        clock: for deadlines and pauses.

    Every method raises `UnavailableError` when no registry answers in time.
    """

    def __init__(
        self,
        address: Address,
        timeout_s: float = 10.0,
        *,
        transport: httpx.BaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        known = RegistryAddress(address) if isinstance(address, str) else address
        url, login = known.url, known.login
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise RefusedError(
                f"{_without_password(url)!r} is not an address of a schema registry",
                hint="it begins with http:// or https:// and a host.",
            )
        self._place = f"schema registry {_without_password(url)}"
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._http = httpx.Client(
            base_url=url.rstrip("/"),
            headers=_HEADERS,
            timeout=timeout_s,
            transport=transport,
            auth=httpx.BasicAuth(login.user, login.password.reveal()) if login else None,
            verify=known.tls.context() if known.tls else True,
            trust_env=not _is_loopback(parts.hostname),  # no proxy reaches our own loopback
            follow_redirects=True,
        )
        self._by_id: BoundedCache[SchemaId, AvroSchema] = BoundedCache(_CACHE_ENTRIES_MAX)
        self._ids: BoundedCache[tuple[str, str], SchemaId] = BoundedCache(_CACHE_ENTRIES_MAX)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def schema_by_id(self, schema_id: SchemaId) -> AvroSchema | None:
        """The schema of an id; None if the registry says that it has no such id.

        Raises:
            SchemaError: it is not an Avro schema that stands alone.
        """
        cached = self._by_id.get(schema_id)
        if cached is not None:
            return cached
        answer = self._ask("GET", f"/schemas/ids/{schema_id}")
        if answer is None:
            return None
        found = self._object(answer, schema=str)
        _check_plain(found, f"schema id {schema_id}")
        schema = parse(found["schema"])
        self._by_id.put(schema_id, schema)
        return schema

    def lookup(self, subject: str, schema_text: str) -> SchemaId | None:
        """The id under which a subject has this schema; None if it does not have it.

        Raises:
            SchemaError: the text is no schema.
        """
        return self._id_of(subject, schema_text, f"/subjects/{_quoted(subject)}")

    def register(self, subject: str, schema_text: str) -> SchemaId:
        """Add a schema to a subject; the same id as before if it is there already.

        Raises:
            SchemaError: the text is no schema, or the registry refuses it.
            IncompatibleSchemaError: it does not fit what is registered; with the reasons.
        """
        found = self._id_of(subject, schema_text, f"/subjects/{_quoted(subject)}/versions")
        if found is None:
            raise self._not_a_registry("answers 404 to a registration")
        return found

    def check(self, subject: str, schema_text: str) -> tuple[str, ...]:
        """Why a schema does not fit the latest version of a subject; empty: it fits.

        Raises:
            SchemaError: the text is no schema.
        """
        schema = parse(schema_text)
        path = f"/compatibility/subjects/{_quoted(subject)}/versions/latest?verbose=true"
        answer = self._ask("POST", path, {"schema": schema.text})
        if answer is None:  # some registries say so of a subject that does not exist yet
            return ()
        found = self._object(answer, is_compatible=bool)
        if found["is_compatible"]:
            return ()
        messages = found.get("messages") or ["the registry says that it is not compatible"]
        return tuple(str(message) for message in messages)

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The latest version of a subject; None if there is no such subject."""
        return self._version(subject, "latest")

    def get(self, subject: str, version: SchemaVersion) -> RegisteredSchema | None:
        """One version of a subject; None if there is no such subject or version."""
        return self._version(subject, str(version))

    def versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """All versions of a subject, oldest first; empty if there is no such subject."""
        answer = self._ask("GET", f"/subjects/{_quoted(subject)}/versions")
        numbers = [] if answer is None else self._list(answer, int)
        found = [self.get(subject, SchemaVersion(number)) for number in sorted(numbers)]
        return tuple(one for one in found if one is not None)

    def subjects(self) -> tuple[str, ...]:
        """All subjects, sorted."""
        answer = self._ask("GET", "/subjects")
        return tuple(sorted([] if answer is None else self._list(answer, str)))

    def _id_of(self, subject: str, schema_text: str, path: str) -> SchemaId | None:
        schema = parse(schema_text)
        key = (subject, content_key(schema))
        cached = self._ids.get(key)
        if cached is not None:
            return cached
        answer = self._ask("POST", path, {"schema": schema.text}, subject)
        if answer is None:
            return None
        schema_id = SchemaId(self._object(answer, id=int)["id"])
        self._ids.put(key, schema_id)
        return schema_id

    def _version(self, subject: str, version: str) -> RegisteredSchema | None:
        answer = self._ask("GET", f"/subjects/{_quoted(subject)}/versions/{version}")
        if answer is None:
            return None
        found = self._object(answer, version=int, id=int, schema=str)
        _check_plain(found, f"subject {subject}, version {version}")
        number, schema_id = SchemaVersion(found["version"]), SchemaId(found["id"])
        return RegisteredSchema(Subject(subject), number, schema_id, found["schema"])

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, subject: str = ""
    ) -> _Answer | None:
        """A good answer; None where the registry says that something is not there."""
        answer = self._send(method, path, body)
        if answer.status == httpx.codes.OK:
            return answer
        if answer.status == httpx.codes.NOT_FOUND and answer.code in _NOT_FOUND:
            return None
        if answer.status == httpx.codes.CONFLICT:
            text = str(body["schema"]) if body else ""
            raise IncompatibleSchemaError(subject, self.check(subject, text) or (answer.message,))
        if answer.status == httpx.codes.UNPROCESSABLE_ENTITY:
            raise SchemaError(f"the registry refuses it: {answer.message}", place=self._place)
        if answer.status in _REFUSALS:
            words, hint = _REFUSALS[answer.status]
            raise RefusedError(
                f"the registry {words} ({answer.status} {answer.message}".rstrip() + ")",
                place=self._place,
                hint=hint,
            )
        raise self._not_a_registry(f"answers {answer.status} {answer.message}".rstrip())

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> _Answer:
        """Send, and send again while that may help and there is time. All calls can be repeated."""
        deadline = Deadline.after(self._clock, self._timeout_s, "asking the schema registry")
        problem: MedusaError | None = None
        for attempt in range(ATTEMPTS_MAX):
            if attempt:
                self._clock.sleep(min(_PAUSES_S[attempt - 1], deadline.remaining_s()))
            if deadline.passed and problem is not None:
                break
            try:
                answer = self._send_once(method, path, body, deadline.remaining_s())
            except UnavailableError as error:
                problem = error
                continue
            if answer.status not in _TRY_AGAIN:
                return answer
            message = f"the registry answers {answer.status} {answer.message}".rstrip()
            problem = UnavailableError(message, place=self._place, hint=_HINT)
        raise problem or UnavailableError("no answer", place=self._place, hint=_HINT)

    def _send_once(
        self, method: str, path: str, body: Mapping[str, Any] | None, timeout_s: float
    ) -> _Answer:
        try:
            response = self._http.request(method, path, json=body, timeout=max(timeout_s, 0.05))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = _disbelief(error)
            if reason is not None:
                raise RefusedError(
                    f"the certificate of the registry is not believed: {reason}",
                    place=self._place,
                    hint="registry.tls.ca must be the authority that it comes from.",
                ) from error
            words = str(error) or type(error).__name__
            raise UnavailableError(
                f"the registry does not answer: {words}", place=self._place, hint=_HINT
            ) from error
        try:
            return _Answer(response.status_code, response.json())
        except ValueError:
            return _Answer(response.status_code, None)

    def _object(self, answer: _Answer, **wanted: type) -> Mapping[str, Any]:
        """The answer, if it is an object that has these keys with values of these types."""
        value = answer.value
        if not isinstance(value, dict) or any(
            not isinstance(value.get(key), kind) for key, kind in wanted.items()
        ):
            raise self._not_a_registry("does not answer as a schema registry does")
        return value

    def _list(self, answer: _Answer, kind: type) -> list[Any]:
        if not isinstance(answer.value, list) or not all(
            isinstance(item, kind) for item in answer.value
        ):
            raise self._not_a_registry("does not answer as a schema registry does")
        return answer.value

    def _not_a_registry(self, what: str) -> UnavailableError:
        return UnavailableError(f"the server {what}", place=self._place, hint=_HINT)


def _check_plain(found: Mapping[str, Any], what: str) -> None:
    kind = found.get("schemaType") or "AVRO"
    if kind != "AVRO":
        raise SchemaError(f"the schema is {kind}, only Avro can be read", place=what)
    if found.get("references"):
        raise SchemaError("the schema refers to others, which is not supported", place=what)


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _without_password(url: str) -> str:
    before, separator, rest = url.rpartition("@")
    scheme = before.partition("://")[0]
    return f"{scheme}://{rest}" if separator else url


def _disbelief(error: BaseException) -> str | None:
    """Why a certificate is not believed, if that is what an error of httpx is about."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause.verify_message if cause is not None else None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
