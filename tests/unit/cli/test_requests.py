"""Commands that read the catalog send as many requests for fifty fragments as for one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pipeline.catalog.catalog import Catalog
from pipeline.names import Znodes
from tests.unit.catalog.support import CountingStore, filled
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import World

Caller = Callable[..., Any]


@pytest.mark.parametrize(
    ("arguments", "requests"),
    [
        (("status",), 12),
        (("status", "net0"), 12),
        (("node", "list"), 10),
        (("get", "net0"), 2),
        (("history", "net0"), 2),
    ],
)
def test_the_requests_of_a_command_are_bounded(
    medusa: Caller, arguments: tuple[str, ...], requests: int
) -> None:
    """For all networks, and for one."""
    for networks, fragments in ((1, 1), (1, 50), (5, 10)):
        store = CountingStore(filled(networks, fragments))
        world = replace(World.new(), catalog=Catalog(store, Znodes("")), store=store)
        assert medusa(*arguments, opener=opener(world)).code == 0
        assert store.requests == requests, (networks, fragments)
