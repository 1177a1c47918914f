"""Removed symbols of an input's enums. Pure."""

import json
from collections.abc import Iterator

from pipeline.planner.columns import pruned
from pipeline.planner.plan import Fragment


def lost_symbols(before: Fragment, after: Fragment) -> tuple[str, ...]:
    """The symbols that enums in columns that are read have lost, in words; empty: none.

    Records with these were accepted, and a rebuild of the state could not read them. An added
    symbol changes nothing: records with it were rejected before. Enums with a default are
    excluded: see `state_digest`.
    """
    had = {stream.name: dict(_symbols(stream.schema_json)) for stream in pruned(before).inputs}
    return tuple(
        f"gone: {', '.join(sorted(lost))}, symbols of the enum {enum} of {stream.name}"
        for stream in pruned(after).inputs
        for enum, symbols in _symbols(stream.schema_json)
        if (lost := had.get(stream.name, {}).get(enum, frozenset()) - symbols)
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
