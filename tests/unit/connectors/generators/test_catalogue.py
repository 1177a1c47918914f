import itertools
import json
from pathlib import Path

import pytest

import pipeline
from connectors.generators.catalogue import KINDS
from connectors.generators.kind import Kind, Made
from schemas import codec
from schemas.avro import parse

START_MS = 1_700_000_000_000
PROJECTS = Path(pipeline.__file__).parent / "projects"
OF_PROJECTS = {
    "cars": "tolls/schemas/sighting.avsc",
    "prices": "prices/schemas/trade.avsc",
    "prices.quotes": "prices/schemas/quote.avsc",
    "sensors": "sensors/schemas/reading.avsc",
    "sensors.calibrations": "sensors/schemas/calibration.avsc",
}
EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def made(kind: Kind, count: int = 300, seed: int = 1, rate: float | None = None) -> list[Made]:
    """The first records of a kind."""
    return list(itertools.islice(kind.make(seed, START_MS, rate or kind.rate), count))


@EACH
def test_equal_arguments_give_equal_records(kind: Kind) -> None:
    """Another seed gives others."""
    first = made(kind, 50)
    assert first == made(kind, 50)
    assert first != made(kind, 50, seed=2)


@EACH
def test_records_fit_the_schema(kind: Kind) -> None:
    """Each has exactly the fields of the schema, also after a round trip through Avro."""
    schema = parse(kind.schema_json)
    names = {field["name"] for field in json.loads(kind.schema_json)["fields"]}
    assert {kind.key, *kind.times} <= names
    for one in made(kind, 20):
        assert set(one.fields) == names
        body = codec.encode(schema, codec.from_json(schema, dict(one.fields)))
        assert set(codec.decode(schema, schema, body)) == names


@EACH
def test_records_come_in_order_and_are_not_of_the_future(kind: Kind) -> None:
    """Times of sending never fall, and a record is sent after it was made, but for wrong clocks."""
    found = made(kind)
    sent = [one.at_ms for one in found]
    assert sent == sorted(sent)
    assert sent[0] > START_MS
    ahead = [one for one in found if int(str(one.fields[kind.event_time])) > one.at_ms]
    assert not ahead or kind.name == "sensors"


@pytest.mark.parametrize(
    ("name", "times"), [("cars", 4.0), ("calls", 0.1), ("clicks", 10.0), ("connections", 0.5)]
)
def test_a_steady_kind_has_the_rate_that_was_asked_for(name: str, times: float) -> None:
    """To a record in a tick."""
    rate = KINDS[name].rate * times
    found = made(KINDS[name], 200, rate=rate)
    assert 200 / ((found[-1].at_ms - START_MS) / 1_000) == pytest.approx(rate, rel=0.1)


@pytest.mark.parametrize("name", ["sensors", "prices", "prices.quotes"])
def test_a_kind_with_bursts_has_about_the_rate(name: str) -> None:
    """On average: some are lost, and some come at once."""
    rate = KINDS[name].rate * 3
    found = made(KINDS[name], 900, rate=rate)
    assert 900 / ((found[-1].at_ms - START_MS) / 1_000) == pytest.approx(rate, rel=0.35)


def test_ports_are_scanned_now_and_then() -> None:
    """One host tries a hundred ports of a server, and is rejected each time."""
    found = [one.fields for one in made(KINDS["connections"], 1_500)]
    rejected = [one for one in found if one["state"] == "rejected"]
    pairs = [(one["source"], one["destination"]) for one in rejected]
    scanned = max(pairs, key=pairs.count)
    assert pairs.count(scanned) >= 100
    assert len({one["port"] for one in rejected}) >= 100


def test_calls_are_consistent() -> None:
    """Only a call that was answered took time; its id is unique; call centres call most."""
    found = [one.fields for one in made(KINDS["calls"], 600)]
    assert len({one["call"] for one in found}) == len(found)
    assert {one["outcome"] for one in found} == {"answered", "missed", "busy", "dropped"}
    for one in found:
        assert (one["seconds"] != 0) == (one["outcome"] in ("answered", "dropped"))
    callers = [one["caller"] for one in found]
    assert callers.count(max(callers, key=callers.count)) > 3


def test_visitors_of_the_shop_order_what_is_in_the_cart() -> None:
    """Orders follow a cart and have its amount; robots never order."""
    found = [one.fields for one in made(KINDS["clicks"], 3_000, rate=20)]
    cart = {one["visitor"] for one in found if one["action"] == "cart"}
    orders = [one for one in found if one["action"] == "order"]
    assert len(orders) > 20
    assert {one["visitor"] for one in orders} <= cart
    assert all(isinstance(one["amount"], float) and one["amount"] > 0 for one in orders)
    assert all(one["amount"] is None for one in found if one["action"] != "order")
    robots = [one for one in found if one["robot"]]
    assert robots
    assert {one["action"] for one in robots} == {"product"}


@pytest.mark.parametrize(("name", "file"), OF_PROJECTS.items())
def test_the_projects_of_init_have_the_schemas_of_their_generators(name: str, file: str) -> None:
    """Byte for byte: a project owns its schema, and a generator has to fit it."""
    assert (PROJECTS / file).read_text(encoding="utf-8") == KINDS[name].schema_json
