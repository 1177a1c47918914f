"""A planned toll network, and the context for lowering its fragments."""

import json
from dataclasses import replace

from pipeline.ids import SchemaId, StreamName, TopicName
from pipeline.lanes.source_ids import first_sources, named_sources, planned_sources
from pipeline.markers.positions import MarkedSource
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from pipeline.spark.query.lower import LoweringInputs
from pipeline.spark.query.lowered import WriterSchema
from tests.unit.planner.networks import OWNER, tolls

SCHEMA = json.dumps({"type": "record", "name": "S", "fields": [{"name": "car", "type": "string"}]})


def fragment(name: str) -> Fragment:
    """A fragment of the toll network."""
    network = tolls(outputs=("toll_notifications", "tow_dispatch"))
    streams = tuple(replace(stream, schema_json=SCHEMA) for stream in network.streams)
    planned = plan(replace(network, streams=streams), OWNER)
    return next(f for f in planned.fragments if f.name == name)


def sources_with_redrive(planned: Fragment) -> tuple[MarkedSource, ...]:
    """As `named_sources`, of a fragment with a redrive topic."""
    names = planned.names
    topics = [names.redrive, *(stream.topic for stream in planned.inputs)]
    return first_sources(planned_sources(planned, {topic: str(topic) for topic in topics}))


def lowering_context(
    planned: Fragment, *, missing: tuple[int, ...] = (), redrive: bool = False
) -> LoweringInputs:
    """One writer schema for each input, two partitions everywhere."""
    names = planned.names
    topics: list[TopicName] = [names.redrive, planned.output.topic]
    topics += [stream.topic for stream in planned.inputs]
    return LoweringInputs(
        sources=sources_with_redrive(planned) if redrive else named_sources(planned),
        writers={StreamName(i.name): (WriterSchema(SchemaId(1), SCHEMA),) for i in planned.inputs},
        missing=tuple(SchemaId(i) for i in missing),
        partitions=dict.fromkeys(topics, 2),
        value_id=SchemaId(7),
        key_id=None if planned.output.key_schema_json is None else SchemaId(8),
    )
