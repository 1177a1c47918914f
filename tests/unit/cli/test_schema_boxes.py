"""`medusa schema register` and `check` name the deployed boxes that a schema would break."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from pipeline.catalog.catalog import Catalog
from pipeline.clock import Clock
from pipeline.errors import UnavailableError
from pipeline.operations.connections import Connections
from pipeline.settings import Settings
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import SCHEMA, World, write_project

Caller = Callable[..., Any]


def test_a_schema_that_would_break_deployed_boxes_is_refused_without_yes(
    medusa: Caller,
) -> None:
    """They are named with path and types, before anything is registered."""
    world = World.new()
    write_project(Path())
    connect = opener(world)
    assert medusa("deploy", "--no-wait", opener=connect).code == 0
    subject = "car-sightings-value"
    wider = SCHEMA.replace('"double"', '["double", "string"]')
    Path("wider.avsc").write_text(wider, encoding="utf-8")
    register = ("schema", "register", subject, "wider.avsc")
    for call in (
        register,
        (*register, "--dry-run"),
        ("schema", "check", "wider.avsc", "--subject", subject),
    ):
        called = medusa(*call, opener=connect)
        assert called.code == 65
        assert "cars.moving: stream sightings, /fields/speed/type" in called.err
        assert "cars.stopped: stream sightings, /fields/speed/type" in called.err
    assert world.registry.lookup(subject, wider) is None
    wanted = medusa(*register, "--yes", "-o", "json", opener=connect)
    assert wanted.code == 0
    assert "cars.moving" in wanted.err
    assert [b["box"] for b in wanted.data["breaks"]] == ["moving", "stopped"]
    assert wanted.data["boxes_checked"] is True
    assert medusa(*register, opener=connect).code == 0, "it is registered by now"


def test_boxes_are_checked_with_referenced_schemas(medusa: Caller) -> None:
    """The type of a column may be defined under another subject."""
    world = World.new()
    write_project(Path())
    connect = opener(world)
    assert medusa("deploy", "--no-wait", opener=connect).code == 0
    world.registry.register("speeds", '{"type":"fixed","name":"units.Speed","size":8}')
    with_speed = SCHEMA.replace('"double"', '["double", "units.Speed"]')
    Path("new.avsc").write_text(with_speed, encoding="utf-8")
    subject = "car-sightings-value"
    refused = medusa(
        *("schema", "register", subject, "new.avsc", "--reference", "speeds:latest"), opener=connect
    )
    assert refused.code == 65
    assert "cars.moving: stream sightings, /fields/speed/type" in refused.err


def test_schemas_are_registered_without_a_reachable_catalog(medusa: Caller) -> None:
    """Notes say that boxes were not checked, and that the event log has no entry of it."""
    world = World.new()
    inner = opener(world)
    write_project(Path())

    class WithoutCatalog:
        """Connections without ZooKeeper and Kafka."""

        @property
        def catalog(self) -> Catalog:
            """Raise the error of an unreachable server."""
            raise UnavailableError("ZooKeeper does not answer", place="127.0.0.1:1")

        @property
        def registry(self) -> Any:
            """The registry of the world."""
            return world.registry

        def lookups(self, _within_s: float) -> Any:
            """Raise the error of an unreachable server."""
            raise UnavailableError("Kafka does not answer", place="127.0.0.1:2")

        def close(self) -> None:
            """No resources to release."""

    def connect(settings: Settings, clock: Clock) -> Connections:
        inner(settings, clock)
        return cast("Connections", WithoutCatalog())

    called = medusa("schema", "register", "s-value", "sighting.avsc", "-o", "json", opener=connect)
    assert (called.code, called.data["boxes_checked"]) == (0, False)
    assert "deployed boxes were not checked: 127.0.0.1:1: ZooKeeper" in called.err
    assert "this is not in the event log: 127.0.0.1:2: Kafka does not answer" in called.err
