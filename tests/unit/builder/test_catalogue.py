import inspect
from typing import Any

import pytest

from pipeline.builder import NetworkBuilder, Stream, boxes
from pipeline.ids import BoxName, StreamName
from pipeline.network.box_settings import read_box_settings
from pipeline.network.boxes.common import Defaults
from pipeline.network.boxes.traits import KINDS, STATEFUL_KINDS
from pipeline.network.fields import Fields, Report
from pipeline.network.streams import read_stream
from pipeline.yaml_reader import YamlMap, YamlNode


def described(function: Any, network: NetworkBuilder, section: str, **given: Any) -> YamlMap:
    """The document of a call with every parameter."""
    names = list(inspect.signature(function).parameters)
    function(**{name: given.get(name, "x") for name in names})
    tree = network.written().tree
    assert isinstance(tree, YamlMap)
    (entries,) = (node for key, node in tree.entries if key.text == section)
    assert isinstance(entries, YamlMap)
    found = entries.entries[-1][1]
    assert isinstance(found, YamlMap)
    return found


def keys(node: YamlNode) -> set[str]:
    """The keys of a mapping."""
    assert isinstance(node, YamlMap)
    return {key.text for key, _ in node.entries}


def a_network() -> tuple[NetworkBuilder, Stream]:
    """A network with one stream."""
    network = NetworkBuilder("n")
    return network, network.stream("s", topic="t", schema="a", event_time="at")


def test_every_kind_of_box_has_a_function_of_its_name() -> None:
    """Everything in YAML exists in Python."""
    assert set(boxes.__all__) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_of_a_kind_has_a_parameter(kind: str) -> None:
    """A call with every parameter writes every key that the kind reads, and no other."""
    network, stream = a_network()
    function = getattr(boxes, kind)
    inputs = {"stream": stream, "left": stream, "right": stream, "streams": [stream, stream]}
    node = described(function, network, "boxes", name="b", **inputs)
    fields = Fields(node, "box", Report("x"), "b")
    KINDS[kind](BoxName("b"), fields, Defaults(None))
    read_box_settings(BoxName("b"), fields, kind, STATEFUL_KINDS)
    shared = {"dead_letters", "placement", "reliability", "priority", "availability"}
    assert keys(node) == {*fields.known, *shared}


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_is_documented(kind: str) -> None:
    """An editor shows the docstring: it names each parameter, and each has a type."""
    function = getattr(boxes, kind)
    text = inspect.getdoc(function) or ""
    for name, parameter in inspect.signature(function).parameters.items():
        assert f"\n    {name}: " in text
        assert parameter.annotation is not inspect.Parameter.empty
        assert parameter.kind is not inspect.Parameter.VAR_KEYWORD


def test_every_key_of_a_stream_has_a_parameter() -> None:
    """The same for external streams."""
    network = NetworkBuilder("n")
    node = described(network.stream, network, "streams", name="s")
    fields = Fields(node, "stream", Report("x"))
    read_stream(StreamName("s"), fields, 1)
    assert keys(node) == {*fields.known, "dead_letters"}
