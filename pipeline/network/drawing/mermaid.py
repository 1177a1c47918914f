"""A picture in the language of Mermaid, which many viewers of Markdown render."""

from collections.abc import Iterator

from pipeline.network.drawing.graph import graph_of
from pipeline.network.drawing.picture import Picture


def as_mermaid(picture: Picture) -> str:
    """A picture as a flow chart; no line feed at the end."""
    return "\n".join(_lines(picture))


def _lines(picture: Picture) -> Iterator[str]:
    graph = graph_of(picture)
    yield "---"
    yield f'title: "{picture.network}"'
    yield "---"
    yield "flowchart LR"
    for topic in graph.topics:
        yield f"  {topic.id}[({_label(topic.lines)})]"
    for cluster in graph.clusters:
        boxes = [f"{box.id}[{_label(box.lines)}]" for box in cluster.boxes]
        if cluster.name:
            yield f"  subgraph {cluster.id}[{_label((cluster.name,))}]"
            yield from (f"    {box}" for box in boxes)
            yield "  end"
        else:
            yield from (f"  {box}" for box in boxes)
    yield from (f"  {tail} --> {head}" for tail, head in graph.edges)


def _label(lines: tuple[str, ...]) -> str:
    return '"' + "<br/>".join(lines).replace('"', "#quot;") + '"'
