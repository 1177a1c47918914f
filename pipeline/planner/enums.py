"""Symbols of enums that an input had, and has no more. Pure."""

import json
from collections.abc import Iterator

from pipeline.planner.columns import pruned
from pipeline.planner.plan import Fragment


def lost_symbols(before: Fragment, after: Fragment) -> bool:
    """Whether a column that is read lacks symbols that it had.

    Records of these were accepted, and a rebuild of the state could not read them. A symbol that is
    added changes nothing: records of it were refused before. Enums with a default are not meant:
    see `state_digest`.
    """
    had = {stream.name: dict(_symbols(stream.schema_json)) for stream in pruned(before).inputs}
    return any(
        had.get(stream.name, {}).get(enum, frozenset()) - symbols
        for stream in pruned(after).inputs
        for enum, symbols in _symbols(stream.schema_json)
    )


def _symbols(schema_json: str) -> Iterator[tuple[str, frozenset[str]]]:
    parts = [json.loads(schema_json)]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts.extend(part)
        elif isinstance(part, dict):
            if part.get("type") == "enum" and "default" not in part:
                yield part["name"], frozenset(part["symbols"])
            parts.extend(inner for name, inner in part.items() if name != "default")
