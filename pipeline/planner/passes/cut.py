"""Pass: cut the network into fragments, each of which one Spark query can run.

A query has at most one stateful box, since it has a single event time. So the cuts are these:

- an output has a topic, and ends a fragment;
- a stateful box ends a fragment too, together with the stateless boxes that follow it one by one:
  as long as each has a single reader, computing it before writing costs nothing;
- every other stateless box is copied into each fragment that needs it: computing a filter twice is
  cheaper than a topic between;
- a box that passes on the key bytes of a derived stream reads it from a topic, which contains them;
- a flat_map ends a fragment: a record is rejected as a whole, so its rows become records of their
  own, in a topic, before another box can reject one of them;
- a deduplication reads a function's output from a topic: it reads all rows twice, and a function is
  called once;
- a box whose reader is to run on other nodes ends a fragment, and so does one that is to run apart
  from another;
- a box reads from a topic whatever has one, and computes the rest itself.

    moving ──┐                                  fragment tolls: tolls_windows, tolls
    tolls_windows ── tolls ──┴ notifications    fragment notifications: moving, notifications
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from pipeline.ids import FragmentId, FragmentName, StreamName
from pipeline.names import FragmentNames, derived_topic, stream_of_box
from pipeline.network.avro_types import to_avro
from pipeline.network.boxes.traits import Provenance, traits
from pipeline.network.model import Box, ExternalStream, KeyFormat, Network
from pipeline.planner.boxes.catalogue import keeps_key
from pipeline.planner.draft import Draft, outputs_of, readers_of
from pipeline.planner.placement import named_apart, nodes_of
from pipeline.planner.plan import DerivedStream, Fragment, FragmentInput


def cut(draft: Draft) -> Draft:
    """Make the fragments, in topological order of their last boxes."""
    network = draft.network
    ends = _ends(network)
    topics: dict[StreamName, FragmentInput] = {s.name: s for s in network.streams}
    fragments: list[Fragment] = []
    for box in network.boxes:
        stream = stream_of_box(box.name)
        if stream not in ends:
            continue
        boxes = _boxes_of(network, box, ends)
        inside = {stream_of_box(b.name) for b in boxes}
        inputs = dict.fromkeys(s for b in boxes for s in b.inputs if s not in inside)
        output = _derived(draft, box)
        topics[stream] = output
        fragments.append(
            Fragment(
                names=FragmentNames(FragmentId(draft.network_id, FragmentName(box.name))),
                inputs=tuple(topics[s] for s in inputs),
                boxes=boxes,
                output=output,
                nodes=nodes_of(network, box),
                apart=_apart_from(network, box),
            )
        )
    return replace(draft, fragments=tuple(fragments))


def _ends(network: Network) -> frozenset[StreamName]:
    """The streams that get a topic."""
    fixed = {
        *outputs_of(network),
        *_passed_keys(network),
        *_as_records(network),
        *_made_of_parts(network),
        *_read_elsewhere(network),
        *named_apart(network),
    }
    readers, ends = readers_of(network), set(fixed)
    for box in network.boxes:
        if traits(box).stateful:
            ends.add(_end_of_chain(box, fixed, readers))
    return frozenset(ends)


def _passed_keys(network: Network) -> frozenset[StreamName]:
    """The derived streams whose key bytes a box passes on, since it lacks a key column."""
    keys = {stream_of_box(box.name): box.key for box in network.boxes}
    return frozenset(
        stream
        for box in network.boxes
        if keeps_key(box)
        for stream in box.inputs
        if keys.get(stream)
    )


def _made_of_parts(network: Network) -> Iterator[StreamName]:
    """The streams whose rows are parts of records."""
    return (stream_of_box(box.name) for box in network.boxes if traits(box).explodes)


def _read_elsewhere(network: Network) -> Iterator[StreamName]:
    """The streams with a reader that may run on other nodes than the box that makes them."""
    for stream, readers in readers_of(network).items():
        box = network.by_name()[stream]
        if isinstance(box, ExternalStream):
            continue
        nodes = nodes_of(network, box)
        if any(nodes_of(network, reader) != nodes for reader in readers):
            yield stream


def _as_records(network: Network) -> frozenset[StreamName]:
    """The outputs of functions that a box reads twice."""
    boxes = {stream_of_box(box.name): box for box in network.boxes}

    def made(stream: StreamName) -> bool:
        box = boxes.get(stream)
        if box is None or traits(box).stateful:
            return False
        return traits(box).provenance is Provenance.CALLED or any(map(made, box.inputs))

    return frozenset(
        stream
        for box in network.boxes
        if traits(box).reads_twice
        for stream in box.inputs
        if made(stream)
    )


def _end_of_chain(
    box: Box,
    fixed: AbstractSet[StreamName],
    readers: Mapping[StreamName, tuple[Box, ...]],
) -> StreamName:
    """The last box of the fragment of a stateful box."""
    stream = stream_of_box(box.name)
    while stream not in fixed and len(readers[stream]) == 1:
        (reader,) = readers[stream]
        if traits(reader).stateful or len(reader.inputs) > 1:
            break
        stream = stream_of_box(reader.name)
    return stream


def _boxes_of(network: Network, last: Box, ends: frozenset[StreamName]) -> tuple[Box, ...]:
    """The boxes that compute `last` from streams that have a topic, in topological order."""
    boxes = {stream_of_box(box.name): box for box in network.boxes}
    needed = {stream_of_box(last.name)}
    open_streams = list(last.inputs)
    while open_streams:
        stream = open_streams.pop()
        if stream in needed or stream in ends or stream not in boxes:
            continue
        needed.add(stream)
        open_streams.extend(boxes[stream].inputs)
    return tuple(box for stream, box in boxes.items() if stream in needed)


def _apart_from(network: Network, last: Box) -> tuple[FragmentName, ...]:
    """The fragments, each named by its last box, that the one of `last` is to run apart from."""
    found = {
        FragmentName(other)
        for pair in network.apart
        for one, other in (pair, pair[::-1])
        if one == last.name
    }
    return tuple(sorted(found))


def _derived(draft: Draft, box: Box) -> DerivedStream:
    """The stream that a fragment writes."""
    network = draft.network
    output = outputs_of(network).get(stream_of_box(box.name))
    by_name = {column.name: column for column in box.columns}
    # A key is written as plain text: the bytes of an enum's symbol depend on its index.
    key = tuple(replace(by_name[name], form=None) for name in box.key)
    key_format = output.key_format if output else KeyFormat.AVRO
    in_avro = key and key_format is KeyFormat.AVRO
    return DerivedStream(
        name=stream_of_box(box.name),
        topic=output.topic if output else derived_topic(draft.network_id, box.name),
        columns=box.columns,
        event_time_column=box.event_time_column,
        key=box.key,
        schema_json=to_avro(box.columns, box.name, network.name),
        key_schema_json=to_avro(key, f"{box.name}_key", network.name) if in_avro else None,
        partitions=output.partitions if output else network.partitions,
        corrections=output.corrections if output else False,
        key_format=key_format,
        lateness_ms=_lateness_ms(network, box),
    )


def _lateness_ms(network: Network, box: Box) -> int:
    """The least lateness of the external streams that a box is computed from."""
    boxes = {stream_of_box(one.name): one for one in network.boxes}
    lateness_ms = {stream.name: stream.lateness_ms for stream in network.streams}
    found: list[int] = []
    above, seen = list(box.inputs), set(box.inputs)
    while above:
        name = above.pop()
        if name in lateness_ms:
            found.append(lateness_ms[name])
        elif name in boxes:
            more = [one for one in boxes[name].inputs if one not in seen]
            seen.update(more)
            above.extend(more)
    return min(found, default=0)
