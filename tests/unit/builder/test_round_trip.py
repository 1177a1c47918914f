import ast
import inspect
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import pipeline
from pipeline import yaml_reader
from pipeline.builder import Limit, NetworkBuilder, Session, Window, Within, boxes
from pipeline.network import document, yaml_writer
from pipeline.network.document import SchemaText
from pipeline.network.model import Network
from tests.profiles import examples
from tests.unit.builder import networks
from tests.unit.builder.networks import CODE, SCHEMA, SUBJECT, described

SIGHTING = (
    Path(pipeline.__file__).parent / "projects" / "tolls" / "schemas" / "sighting.avsc"
).read_text(encoding="utf-8")
CODES = {CODE: "def rate(batch):\n    return batch\n"}
SCHEMAS = {SCHEMA: SIGHTING, SUBJECT: SIGHTING}
SEVERAL = settings(max_examples=examples(60))


def loaded(text: str) -> Network:
    """The network of a YAML text."""
    schemas: dict[Any, Any] = {
        reference: SchemaText(SIGHTING, reference.value)
        for reference in document.schema_references(text, "network.yaml")
    }
    references = document.code_references(document.read(text, "network.yaml"))
    code = {reference.box: CODES[reference.file] for reference in references}
    return document.load(text, "network.yaml", schemas, code)


@SEVERAL
@given(described())
def test_a_description_and_its_yaml_are_the_same_network(network: NetworkBuilder) -> None:
    """Every kind of box, every option: built in Python, or loaded from the written text."""
    assert network.build(SCHEMAS, CODES) == loaded(network.yaml())


@SEVERAL
@given(described(), st.sampled_from(("block", "flow", "mixed")))
def test_a_document_in_any_style_is_written_as_the_same_network(
    network: NetworkBuilder, style: str
) -> None:
    """Read and written again, a YAML document keeps its meaning, whatever its layout."""
    content = yaml.load(network.yaml(), yaml.BaseLoader)  # noqa: S506 - builds texts only
    flow = {"block": False, "flow": True}.get(style)
    styled = yaml.dump(content, default_flow_style=flow, sort_keys=False, width=40)
    tree, problems = yaml_reader.read(styled, "network.yaml")
    assert tree is not None
    assert not problems
    assert loaded(yaml_writer.write(tree)) == loaded(network.yaml())


@SEVERAL
@given(described())
def test_the_same_description_has_the_same_text(network: NetworkBuilder) -> None:
    """So a deploy of an unchanged file changes nothing."""
    text = network.yaml()
    assert network.yaml() == text
    tree, _ = yaml_reader.read(text, "network.yaml")
    assert tree is not None
    assert yaml_writer.write(tree) == text


INPUTS = {"self", "name", "stream", "streams", "left", "right", "box"}
"""Parameters that are no options."""
CALLS: dict[str, Callable[..., Any]] = {
    "NetworkBuilder": NetworkBuilder,
    "network.stream": NetworkBuilder.stream,
    "network.output": NetworkBuilder.output,
    **{part.__name__: part for part in (Limit, Session, Window, Within)},
    **{f"boxes.{kind}": getattr(boxes, kind) for kind in boxes.__all__},
}


def options_used(source: str) -> dict[str, set[str]]:
    """The options in the calls of a function, or of `st.builds` with it, in a program."""
    found: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            function = ast.unparse(node.func)
            called = ast.unparse(node.args[0]) if function == "st.builds" else function
            found[called] |= {keyword.arg for keyword in node.keywords if keyword.arg}
    return found


def test_the_strategies_use_every_kind_of_box_and_every_option() -> None:
    """Otherwise the networks above would not have every kind and option."""
    given_options = options_used(inspect.getsource(networks))
    for call, function in CALLS.items():
        options = {*inspect.signature(function).parameters} - INPUTS
        assert options <= given_options[call], call
