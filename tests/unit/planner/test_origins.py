"""Failures are reported in the terms of the document, whatever the planner made of it."""

import json

from pipeline.ids import ParticipantId
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.join import Join
from pipeline.network.boxes.map import Map
from pipeline.network.document import SchemaText, load, schema_references
from pipeline.network.model import Box, Expression, ExternalStream
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Trade",
        "fields": [
            {"name": "venue", "type": ["null", "int"], "default": None},
            {"name": "price", "type": "int"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)
DOCUMENT = """
network: prices
window: 1m
streams:
  trades: {topic: trades, schema: trade.avsc, event_time: at}
boxes:
  sane: {filter: trades, where: 100 / price > 0}
  high: {aggregate: sane, by: {group: 10 / venue}, compute: {price: max(7 / price)}}
  total: {aggregate: sane, by: {group: 10 / venue}, compute: {sum: 1 / sum(price)}}
  spread:
    join: {left: high, right: total, on: [group, window_end]}
    select: {group: left.group, ratio: left.price / right.sum}
outputs: {spread: {topic: spread}}
"""


def _fragment() -> Fragment:
    schemas = {
        reference: SchemaText(SCHEMA, "trade.avsc")
        for reference in schema_references(DOCUMENT, "network.yaml")
    }
    (fragment,) = plan(load(DOCUMENT, "network.yaml", schemas), ParticipantId("us")).fragments
    return fragment


def _expressions(box: Box) -> tuple[Expression, ...]:
    match box:
        case Filter():
            return (box.where,)
        case Map() | Join():
            return tuple(c.expression for c in box.select)
        case Aggregate():
            arguments = (a.argument for a in box.aggregations if a.argument is not None)
            computed = (c.expression for c in (*box.by, *box.compute))
            return (*computed, *arguments)
        case _:
            raise AssertionError(box.kind)


def test_every_failure_has_its_place_in_the_document() -> None:
    """Two aggregates were merged and a filter was put before them; neither name is reported."""
    fragment = _fragment()
    assert [box.name for box in fragment.boxes] == [
        "sane",
        "spread_keyed",
        "spread_windows",
        "spread",
    ]
    failing = [e for box in fragment.boxes for e in _expressions(box) if e.failed is not None]
    assert {(e.origin.box, e.origin.field) for e in failing} == {
        ("sane", "where"),
        ("high", "by.group"),
        ("high", "compute.price"),
        ("total", "compute.sum"),
        ("spread", "select.ratio"),
    }


def test_a_group_that_cannot_be_evaluated_fails_in_the_aggregate() -> None:
    """The planner's own filter for null groups passes it, so that one box alone refuses."""
    keyed = _fragment().boxes[1]
    assert isinstance(keyed, Filter)
    assert keyed.where.failed is None
    assert " IS NOT NULL" in keyed.where.sql
    assert keyed.where.sql.startswith("(")


def test_the_event_time_of_a_stream_has_a_field_and_no_box() -> None:
    """A box is named only where one failed."""
    (stream,) = _fragment().inputs
    assert isinstance(stream, ExternalStream)
    event_time = stream.event_time
    assert (event_time.origin.box, event_time.origin.field) == ("", "event_time")
