"""Rewriting of paths with a context, `/contexts/.line-3/…`, to paths with qualified names. Pure."""

from collections.abc import Sequence
from typing import Final

from schemas.rest.call import Query
from schemas.rest.errors import HttpError

_CONTEXTS: Final = "contexts"
_BEFORE_NAMES: Final = {"subjects"}
_FIRST_BEFORE_NAMES: Final = {"config", "mode"}


def rewritten(path: Sequence[str], query: Query) -> tuple[tuple[str, ...], Query]:
    """Path segments and query, with the context of the path added to every name without one.

    Raises:
        HttpError: the name of the context has a colon.
    """
    if len(path) < 2 or path[0] != _CONTEXTS:  # noqa: PLR2004 - `contexts` and a name
        return tuple(path), query
    prefix, rest = _prefix(path[1]), tuple(path[2:])
    if not rest:
        return (_CONTEXTS, prefix or path[1]), query
    named: list[str] = []
    before = ""
    for index, part in enumerate(rest):
        is_name = before in _BEFORE_NAMES or (before in _FIRST_BEFORE_NAMES and index == 1)
        named.append(_named(prefix, part) if is_name else part)
        before = "" if is_name else part  # a subject may be named like a preceding segment
    if len(rest) == 1 and rest[0] in _FIRST_BEFORE_NAMES and prefix:
        named.append(prefix)
    return tuple(named), _query(rest, query, prefix)


def _query(path: Sequence[str], query: Query, prefix: str) -> Query:
    if path[:2] in (("schemas", "ids"), ("schemas", "guids")):
        key = "subject"
    elif tuple(path) in {("schemas",), ("subjects",)}:
        key = "subjectPrefix"
    else:
        return query
    changed = [(name, _named(prefix, value) if name == key else value) for name, value in query]
    return changed if any(name == key for name, _ in query) else [*changed, (key, prefix)]


def _named(prefix: str, name: str) -> str:
    return name if name.startswith((":.", ":*:")) else f"{prefix}{name}"


def _prefix(context: str) -> str:
    """The prefix of names of a context; empty for the default one."""
    name = context.removeprefix(":").removesuffix(":")
    if ":" in name:
        raise HttpError(400, message="Context name cannot contain a colon")
    name = name if name.startswith(".") else f".{name}"
    return "" if name == "." else f":{name}:"
