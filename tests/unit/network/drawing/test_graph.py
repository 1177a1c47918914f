import re

from hypothesis import given

from pipeline.network.drawing.dot import as_dot
from pipeline.network.drawing.graph import graph_of
from pipeline.network.drawing.mermaid import as_mermaid
from pipeline.network.drawing.picture import DrawnBox, Inflow, Part, Picture
from tests.unit.network.drawing.pictures import pictures

TEXT = r'"(?:[^"\\]|\\.)*"'
DOT = "|".join(
    (
        rf"digraph {TEXT} \{{",
        r"  rankdir=LR;",
        r'  node \[fontname="sans-serif", shape=box\];',
        rf"  \w+ \[label={TEXT}(, shape=cylinder)?\];",
        r"  subgraph cluster_\w+ \{",
        rf'    label={TEXT}; fontname="sans-serif"; style=rounded;',
        rf"    \w+ \[label={TEXT}\];",
        r"  \w+ -> \w+;",
        r"  \}",
        r"\}",
    )
)
LABEL = r'\["[^"]*"\]'
MERMAID = (
    rf'---|title: "\w+"|flowchart LR|  \w+\[\("[^"]*"\)\]|  subgraph \w+{LABEL}|  end'
    rf"|(  |    )\w+{LABEL}|  \w+ --> \w+"
)


@given(pictures())
def test_every_line_is_in_the_language(picture: Picture) -> None:
    """Brackets are balanced, and each line is one of the few forms that are used."""
    dot, mermaid = as_dot(picture), as_mermaid(picture)
    assert all(re.fullmatch(DOT, line) for line in dot.splitlines())
    assert dot.count("{") == dot.count("}")
    assert all(re.fullmatch(MERMAID, line) for line in mermaid.splitlines())
    assert mermaid.count("subgraph") == mermaid.count("  end")


@given(pictures())
def test_both_languages_draw_the_same_edges(picture: Picture) -> None:
    """Between nodes that are declared, each of them once."""
    graph = graph_of(picture)
    declared = [n.id for n in graph.topics] + [b.id for c in graph.clusters for b in c.boxes]
    assert len(declared) == len(set(declared))
    assert {end for edge in graph.edges for end in edge} <= set(declared)
    assert tuple(re.findall(r"(\w+) -> (\w+);", as_dot(picture))) == graph.edges
    assert tuple(re.findall(r"(\w+) --> (\w+)", as_mermaid(picture))) == graph.edges


@given(pictures())
def test_there_is_an_edge_for_every_input_and_every_topic(picture: Picture) -> None:
    """No more and no less."""
    expected = sum(
        len(set(box.inputs)) + len(box.topics) for part in picture.parts for box in part.boxes
    )
    assert len(graph_of(picture).edges) == expected


def test_a_topic_between_two_groups_is_one_node() -> None:
    """One writes it, the other reads it, and it is not drawn as external."""
    one = Part((Inflow("s", "in"),), (DrawnBox("a", "map", ("s",), ("between",)),), "one")
    two = Part((Inflow("a", "between"),), (DrawnBox("b", "map", ("a",), ("out",)),), "two")
    graph = graph_of(Picture("n", (one, two)))
    assert [node.lines for node in graph.topics] == [("s", "[in]"), ("[between]",), ("[out]",)]
    assert graph.edges == (
        ("topic1", "box1x1"), ("box1x1", "topic2"), ("topic2", "box2x1"), ("box2x1", "topic3"),
    )  # fmt: skip
