"""A picture in DOT, the language of Graphviz."""

from collections.abc import Iterator

from pipeline.network.drawing.graph import Node, graph_of
from pipeline.network.drawing.picture import Picture


def as_dot(picture: Picture) -> str:
    """A picture as a directed graph; no line feed at the end."""
    return "\n".join(_lines(picture))


def _lines(picture: Picture) -> Iterator[str]:
    graph = graph_of(picture)
    yield f"digraph {_quoted(picture.network)} {{"
    yield "  rankdir=LR;"
    yield '  node [fontname="sans-serif", shape=box];'
    yield from (f"  {_node(topic, ', shape=cylinder')}" for topic in graph.topics)
    for cluster in graph.clusters:
        # Graphviz draws a border around what is called a cluster.
        if cluster.name:
            yield f"  subgraph cluster_{cluster.id} {{"
            yield f'    label={_quoted(cluster.name)}; fontname="sans-serif"; style=rounded;'
            yield from (f"    {_node(box)}" for box in cluster.boxes)
            yield "  }"
        else:
            yield from (f"  {_node(box)}" for box in cluster.boxes)
    yield from (f"  {tail} -> {head};" for tail, head in graph.edges)
    yield "}"


def _node(node: Node, more: str = "") -> str:
    return f"{node.id} [label={_quoted(*node.lines)}{more}];"


def _quoted(*lines: str) -> str:
    return '"' + r"\n".join(line.replace('"', r"\"") for line in lines) + '"'
