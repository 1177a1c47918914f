"""`placement` in a document."""

from collections.abc import Callable

import pytest

from pipeline.labels import EVERY_NODE, parse_selector
from pipeline.network.model import Network

STREAMS = "streams: {s: {topic: t, schema: sighting.avsc, event_time: seen_at}}\n"
HEAD = f"network: n\n{STREAMS}boxes:\n"
A, B = parse_selector("zone=a"), parse_selector("zone=b")
FILTERS = """\
  a: {filter: s, where: speed > 0%s}
  b: {filter: a, where: speed > 1%s}
  c: {filter: b, where: speed > 2%s}
"""
Loads = Callable[..., Network]
Problems = Callable[..., list[str]]


def test_the_network_boxes_and_outputs_declare_nodes(load_text: Loads) -> None:
    """What a box omits stays open."""
    boxes = FILTERS % (", placement: {nodes: 'zone=b'}", "", "")
    found = load_text(
        f"network: n\nplacement: {{nodes: zone=a}}\n{STREAMS}boxes:\n{boxes}"
        "outputs: {b: {topic: b, placement: {nodes: zone=b}}, c: {topic: c}}\n"
    )
    assert found.nodes == A
    assert [one.nodes for one in found.box_settings] == [B, None, None]
    assert [one.nodes for one in found.outputs] == [B, None]


def test_without_a_placement_every_node_is_meant(load_text: Loads) -> None:
    """The defaults."""
    found = load_text(HEAD + "  a: {filter: s, where: speed > 0}\n")
    assert (found.nodes, found.apart) == (EVERY_NODE, ())


@pytest.mark.parametrize(
    ("head", "boxes", "outputs", "pairs"),
    [
        ("[a, c]", ("", "", ""), "", [("a", "c")]),
        ("[c, b, a]", ("", "", ""), "", [("a", "b"), ("a", "c"), ("b", "c")]),
        ("", ("", ", placement: {apart: [a, c]}", ""), "", [("a", "b"), ("b", "c")]),
        ("[a, b]", ("", ", placement: {apart: [a]}", ""), "", [("a", "b")]),
        ("", ("", "", ""), "outputs: {c: {topic: x, placement: {apart: [a]}}}", [("a", "c")]),
    ],
)
def test_boxes_of_a_list_run_apart(
    head: str,
    boxes: tuple[str, str, str],
    outputs: str,
    pairs: list[tuple[str, str]],
    load_text: Loads,
) -> None:
    """Of the network, each from each; of a box or an output, that one from the others."""
    top = f"placement: {{apart: {head}}}\n" if head else ""
    found = load_text(f"network: n\n{top}{STREAMS}boxes:\n{FILTERS % boxes}{outputs}\n")
    assert list(found.apart) == pairs


@pytest.mark.parametrize(
    ("placement", "problem"),
    [
        ("{nodes: zone=}", "nodes of placement of box c: 'zone=' selects no nodes: write"),
        ("{nodes: 'zone=a,zone=b'}", "no node can have both zone=a and zone=b"),
        ("{nodes: [zone=a]}", "nodes of placement of box c must be one value, not a list"),
        ("{apart: a}", "apart of placement of box c must be a list"),
        ("{apart: [aa]}", "apart names no box: aa (there is: a, "),
        ("{apart: [s]}", "apart names no box: s"),
        ("{apart: [c]}", "c cannot run apart from itself"),
        ("{zone: a}", "placement of box c has no key zone"),
        ("zone=a", "placement of box c must be a mapping"),
    ],
)
def test_mistakes_in_a_placement(placement: str, problem: str, problems_of: Problems) -> None:
    """Each is reported with its line."""
    found = problems_of(HEAD + FILTERS % ("", "", f", placement: {placement}"))
    assert len(found) == 1
    assert problem in found[0]
    assert "network.yaml:6" in found[0]


def test_a_network_names_at_least_two_boxes_apart(problems_of: Problems) -> None:
    """One alone is apart from nothing; the same twice neither."""
    for apart, problem in (("[a]", "names one box"), ("[a, a]", "a cannot run apart from itself")):
        text = f"network: n\nplacement: {{apart: {apart}}}\n{STREAMS}boxes:\n"
        found = problems_of(text + FILTERS % ("", "", ""))
        assert len(found) == 1
        assert problem in found[0]


def test_nodes_of_a_box_and_of_its_output_are_one(problems_of: Problems) -> None:
    """They are written once."""
    boxes = FILTERS % ("", "", ", placement: {nodes: zone=a}")
    found = problems_of(
        f"{HEAD}{boxes}outputs: {{c: {{topic: c, placement: {{nodes: zone=a}}}}}}\n"
    )
    assert len(found) == 1
    assert "box c has nodes of its own: write them there or here" in found[0]


def test_the_nodes_of_a_branch_are_those_of_its_route(problems_of: Problems) -> None:
    """Its output declares none."""
    found = problems_of(
        HEAD
        + "  r: {route: s, to: {x: speed > 0}}\n"
        + "outputs: {x: {topic: x, placement: {nodes: zone=a}}}\n"
    )
    assert len(found) == 1
    assert "x runs where its route does: write nodes at r" in found[0]


def test_a_route_makes_several_streams(problems_of: Problems, load_text: Loads) -> None:
    """Its branches are named apart; nodes are those of the route."""
    route = (
        "  r: {route: s, to: {x: speed > 0}, otherwise: y%s}\n"
        "  d: {filter: s, where: speed > 0%s}\n"
    )
    found = load_text(HEAD + route % (", placement: {nodes: zone=a}", ", placement: {apart: [x]}"))
    assert found.apart == (("d", "x"),)
    for placed in ((", placement: {apart: [d]}", ""), ("", ", placement: {apart: [r]}")):
        found_problems = problems_of(HEAD + route % placed)
        assert len(found_problems) == 1
        assert "makes several" in found_problems[0]
