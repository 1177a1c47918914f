"""Scenarios: sequences of requests with the registry's expected responses."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

ANYTHING: Final = object()
ABSENT: Final = object()
"""As the value of a key: the response must not contain the key."""
STRING: Final = '"string"'
INT: Final = '"int"'


@dataclass(frozen=True)
class StartsWith:
    """A text with this prefix: Confluent's registry does not document the rest."""

    text: str


@dataclass(frozen=True)
class Raw:
    """A response body of exactly this text."""

    text: str


@dataclass(frozen=True)
class Step:
    """One request and its expected response.

    Args:
        request: method and path.
        body: sent as JSON; bytes are sent as they are; None: no body.
        answer: objects by the listed keys; lists and all other values exactly.
        headers: of the request.
        response_headers: headers of the response.
    """

    request: str
    body: Any = None
    status: int = 200
    answer: Any = ANYTHING
    headers: Mapping[str, str] = field(default_factory=dict)
    response_headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """Steps against a fresh registry."""

    name: str
    steps: Sequence[Step]


def scenario(name: str, *steps: Step) -> Scenario:
    """A scenario of these steps."""
    return Scenario(name, steps)


def ok(request: str, answer: Any = ANYTHING, *, body: Any = None) -> Step:
    """A request with status 200."""
    return Step(request, body, 200, answer)


def refused(request: str, code: int, message: Any = ANYTHING, *, body: Any = None) -> Step:
    """A refused request; the first digits of the code are the status."""
    status = code // 100 if code > 999 else code
    return Step(request, body, status, {"error_code": code, "message": message})


def register(subject: str, schema: str, answer: Any = ANYTHING, **more: Any) -> Step:
    """Register a schema; a pair as the answer is its id and version."""
    expected = answer
    if isinstance(answer, tuple):
        expected = {"id": answer[0], "version": answer[1]}
    return ok(f"POST /subjects/{subject}/versions", expected, body={"schema": schema, **more})


def unregistrable(
    subject: str, schema: str, code: int, message: Any = ANYTHING, **more: Any
) -> Step:
    """Try to register a schema that is refused."""
    path = f"POST /subjects/{subject}/versions"
    return refused(path, code, message, body={"schema": schema, **more})


def field_of(name: str, kind: Any = "int", **more: Any) -> dict[str, Any]:
    """A field of a record."""
    return {"name": name, "type": kind, **more}


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> str:
    """A record as Java Avro prints it."""
    value = {"type": "record", "name": name, **more, "fields": list(fields)}
    return json.dumps(value, separators=(",", ":"))


def carry_out(steps: Sequence[Step], http: httpx.Client) -> None:
    """Send each request and compare the response with the expected one."""
    for number, step in enumerate(steps, 1):
        where = f"step {number}: {step.request}"
        method, _, path = step.request.partition(" ")
        sent = {"content": step.body} if isinstance(step.body, bytes) else {"json": step.body}
        found = http.request(
            method, path, headers=dict(step.headers), **({} if step.body is None else sent)
        )
        assert found.status_code == step.status, (where, found.status_code, found.text)
        if isinstance(step.answer, Raw):
            assert found.text == step.answer.text, where
        elif step.answer is not ANYTHING:
            problem = difference(step.answer, found.json())
            assert problem is None, (where, problem, found.text)
        for name, value in step.response_headers.items():
            assert found.headers.get(name) == value, (where, name)


def difference(expected: Any, found: Any, at: str = "answer") -> str | None:
    """The first difference between a response and the expected one; None: there is none."""
    if expected is ANYTHING:
        return None
    if isinstance(expected, StartsWith):
        fits = isinstance(found, str) and found.startswith(expected.text)
        return None if fits else f"{at}: {found!r} does not begin with {expected.text!r}"
    if isinstance(expected, dict) and isinstance(found, dict):
        return _difference_of_objects(expected, found, at)
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = zip(expected, found, strict=True)
        problems = (difference(a, b, f"{at}[{n}]") for n, (a, b) in enumerate(pairs))
        return next(filter(None, problems), None)
    same = type(expected) is type(found) and expected == found
    return None if same else f"{at}: {found!r} is not {expected!r}"


def _difference_of_objects(
    expected: Mapping[str, Any], found: Mapping[str, Any], at: str
) -> str | None:
    for key, one in expected.items():
        if (one is ABSENT) == (key in found):
            return f"{at}.{key}: {'there' if key in found else 'missing'}"
        problem = None if one is ABSENT else difference(one, found[key], f"{at}.{key}")
        if problem:
            return problem
    return None
