"""Shell completion of names from the catalog and the schema registry.

A shell calls the program for each Tab, so completion never fails, writes or blocks for long: if a
server is unreachable, there are no candidates. Slow imports happen only where they are needed.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.common import common_of, flags_of
from pipeline.cli.project import load_project
from pipeline.clock import Clock
from pipeline.ids import NetworkId, NetworkName
from pipeline.settings import Settings
from pipeline.system_clock import SystemClock

if TYPE_CHECKING:
    from pipeline.catalog.catalog import Catalog
    from pipeline.operations.connections import Connections

Completer = Callable[[click.Context, click.Parameter, str], list[str]]
"""Returns the candidates at the cursor for the typed prefix."""
SERVERS_WITHIN_S = 1.0
_WITHIN_S = 4.0
"""Limit of a completion; longer than that of the servers, since drivers need time of their own."""


def result_within(fetch: Callable[[], Sequence[str]], within_s: float) -> Sequence[str]:
    """The result of a function, empty if it fails or takes longer; a timeout leaves it running."""
    found: list[str] = []

    def run() -> None:
        with suppress(Exception):
            found.extend(fetch())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(within_s)
    return () if thread.is_alive() else found


def _completer(names: Callable[["Connections", click.Context], Iterable[str]]) -> Completer:
    def complete(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        # Log lines of a driver would appear within the line that is being typed.
        logging.disable(logging.CRITICAL)
        try:
            found = result_within(lambda: _fetch(names, ctx), _WITHIN_S)
        finally:
            logging.disable(logging.NOTSET)
        return [name for name in found if name.startswith(incomplete)]

    return complete


def open_with_short_timeout(settings: Settings, clock: Clock) -> "Connections":
    """Connections to the real servers with a short timeout."""
    from pipeline.operations.connections import Connections  # noqa: PLC0415

    return Connections(settings, clock, SERVERS_WITHIN_S)


def _fetch(
    names: Callable[["Connections", click.Context], Iterable[str]], ctx: click.Context
) -> Sequence[str]:
    flags = dict(flags_of(common_of(ctx)))
    if ctx.params.get("registry"):
        flags["registry.url"] = ctx.params["registry"]
    settings = load_project(flags, os.environ, Path.cwd()).settings
    connections: Connections = (ctx.obj or open_with_short_timeout)(settings, SystemClock())
    try:
        return tuple(names(connections, ctx))
    finally:
        connections.close()


def _catalog(connections: "Connections") -> "Catalog":
    """The catalog, read-only: `connections.catalog` would create a missing one."""
    from pipeline.catalog.catalog import Catalog  # noqa: PLC0415
    from pipeline.names import Znodes  # noqa: PLC0415

    return Catalog(connections.store, Znodes(""))


def _networks(connections: "Connections", _ctx: click.Context) -> Iterable[str]:
    return (
        str(record.network) for record in _catalog(connections).networks.of(connections.participant)
    )


def _nodes(connections: "Connections", _ctx: click.Context) -> Iterable[str]:
    catalog, participant = _catalog(connections), connections.participant
    return sorted({*catalog.nodes.names(participant), *catalog.drains.of(participant)})


def _fragments(connections: "Connections", _ctx: click.Context) -> Iterable[str]:
    catalog = _catalog(connections)
    names = (record.network for record in catalog.networks.of(connections.participant))
    return (f"{one.network}.{one.fragment}" for one in catalog.fragments.of(*names))


def _parts(connections: "Connections", ctx: click.Context) -> Iterable[str]:
    yield from _networks(connections, ctx)
    yield from _fragments(connections, ctx)


def _streams(connections: "Connections", _ctx: click.Context) -> Iterable[str]:
    from pipeline.deploy.streams import arrows  # noqa: PLC0415
    from pipeline.operations.networks import deployed_plans  # noqa: PLC0415

    found = arrows(deployed_plans(_catalog(connections), connections.participant))
    yield from dict.fromkeys(arrow.stream for arrow in found)
    yield from (f"{arrow.network}.{arrow.stream}" for arrow in found)


def _subjects(connections: "Connections", _ctx: click.Context) -> Iterable[str]:
    return connections.registry.subjects()


def _versions(connections: "Connections", ctx: click.Context) -> Iterable[str]:
    network = _typed_argument(ctx, "network")
    name = NetworkId(connections.participant, NetworkName(network))
    record = _catalog(connections).networks.get(name) if network else None
    return (str(number) for number in range(1, record.version + 1)) if record else ()


def _schema_versions(connections: "Connections", ctx: click.Context) -> Iterable[str]:
    subject = _typed_argument(ctx, "subject")
    numbers = connections.registry.admin.version_numbers(subject) if subject else ()
    return map(str, numbers)


def _typed_argument(ctx: click.Context, name: str) -> str:
    """An argument that is typed already: click leaves it unparsed if an option lacks its value."""
    return str(ctx.params.get(name) or next(iter(ctx.args), ""))


networks: Completer = _completer(_networks)
"""Deployed networks."""
nodes: Completer = _completer(_nodes)
"""Nodes that are up, or drained."""
fragments: Completer = _completer(_fragments)
"""Fragments of deployed networks, as NETWORK.FRAGMENT."""
parts: Completer = _completer(_parts)
"""Deployed networks and their fragments."""
streams: Completer = _completer(_streams)
"""Streams that have a topic."""
subjects: Completer = _completer(_subjects)
"""Subjects of the schema registry."""
versions: Completer = _completer(_versions)
"""Versions of the network that is the verb's argument."""
schema_versions: Completer = _completer(_schema_versions)
"""Versions of the subject that is the verb's argument."""
