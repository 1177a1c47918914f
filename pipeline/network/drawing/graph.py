"""A picture as nodes and edges: the input of the drawing programs."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.network.drawing.picture import Part, Picture


@dataclass(frozen=True, slots=True)
class Node:
    """A topic or a box. `id` is made of letters and digits; `lines` are its label."""

    id: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cluster:
    """The boxes of a part."""

    id: str
    name: str
    boxes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes and edges. `edges` are pairs of ids."""

    topics: tuple[Node, ...]
    clusters: tuple[Cluster, ...]
    edges: tuple[tuple[str, str], ...]


def graph_of(picture: Picture) -> Graph:
    """The graph of a picture; equal pictures give equal graphs.

    A topic between two parts is one node, which one part writes and the other reads.
    """
    topics = {inflow.topic: (inflow.name, f"[{inflow.topic}]") for inflow in picture.outside()} | {
        topic: (f"[{topic}]",)
        for part in picture.parts
        for box in part.boxes
        for topic in box.topics
    }
    ids = {topic: f"topic{number}" for number, topic in enumerate(topics, start=1)}
    clusters: list[Cluster] = []
    edges: list[tuple[str, str]] = []
    for number, part in enumerate(picture.parts, start=1):
        own = {box.name: f"box{number}x{i}" for i, box in enumerate(part.boxes, start=1)}
        nodes = tuple(Node(own[box.name], (box.name, box.kind)) for box in part.boxes)
        clusters.append(Cluster(f"part{number}", part.name, nodes))
        edges.extend(_edges(part, own, ids))
    return Graph(
        tuple(Node(ids[topic], lines) for topic, lines in topics.items()),
        tuple(clusters),
        tuple(edges),
    )


def _edges(part: Part, boxes: dict[str, str], topics: dict[str, str]) -> Iterator[tuple[str, str]]:
    inside = {inflow.name: topics[inflow.topic] for inflow in part.inflows} | boxes
    for box in part.boxes:
        for name in dict.fromkeys(box.inputs):
            yield inside[name], boxes[box.name]
        for topic in box.topics:
            yield boxes[box.name], topics[topic]
