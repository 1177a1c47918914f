from hypothesis import given
from hypothesis import strategies as st

from pipeline import yaml_reader
from pipeline.network import yaml_writer
from pipeline.network.written import node_as_data, node_from_data
from pipeline.yaml_reader import YamlList, YamlMap, YamlNode, YamlScalar

AWKWARD = (
    *("|", "~", "null", "true", "5", "1e3", "-", "#", "=", "*a", "&a", "{a", "[a", "%a", "a:", "?"),
    *("\x85", "a\u2028b", "\u2029", "\ufeff", "\x00", "\x7f", "\r", "\r\n", "\x0b", "\xa0"),
    *("it's", '"b"', "", " a ", "a: b", "a #b", "- a", "a\n b\n", "\n", "\t", "ä€😀", "2024-01-31"),
)


def nodes() -> st.SearchStrategy[YamlNode]:
    """Trees of texts that YAML may parse as another type; every line is 1."""
    texts = st.sampled_from(AWKWARD) | st.text(max_size=30)
    scalars: st.SearchStrategy[YamlNode] = st.builds(YamlScalar, texts, st.just(1)) | st.just(
        YamlScalar("null", 1, null=True)
    )
    keys = texts.filter(lambda text: text != "<<")

    def larger(inner: st.SearchStrategy[YamlNode]) -> st.SearchStrategy[YamlNode]:
        entries = st.dictionaries(keys, inner, max_size=4).map(
            lambda found: tuple((YamlScalar(key, 1), value) for key, value in found.items())
        )
        items = st.lists(inner, max_size=4).map(tuple)
        return st.builds(YamlList, items, st.just(1)) | st.builds(YamlMap, entries, st.just(1))

    return st.recursive(scalars, larger, max_leaves=20)


def at_line_one(node: YamlNode) -> YamlNode:
    """A tree with every line as 1."""
    if isinstance(node, YamlScalar):
        return YamlScalar(node.text, 1, node.null)
    if isinstance(node, YamlList):
        return YamlList(tuple(at_line_one(item) for item in node.items), 1)
    return YamlMap(
        tuple((YamlScalar(key.text, 1), at_line_one(value)) for key, value in node.entries), 1
    )


@given(nodes())
def test_written_documents_round_trip(tree: YamlNode) -> None:
    """For any texts: quotes, line ends, YAML keywords."""
    again, problems = yaml_reader.read(yaml_writer.write(tree), "x")
    assert not problems
    assert again is not None
    assert at_line_one(again) == tree


@given(nodes())
def test_a_tree_round_trips_as_data(tree: YamlNode) -> None:
    """Plain lists between two processes, and an equal tree after them."""
    assert node_from_data(node_as_data(tree)) == tree


def test_the_text_is_in_a_natural_style(tolls_text: str) -> None:
    """Short values in one line, long ones in several, quotes only where they are needed."""
    tree, _ = yaml_reader.read(tolls_text, "network.yaml")
    assert tree is not None
    lines = yaml_writer.write(tree).splitlines()
    assert "  moving: {filter: sightings, where: speed > 0}" in lines
    assert "    lateness: 5s" in lines
    assert (
        "    join: {left: moving, right: tolls, on: [road, segment], within: {after: window}}"
        in lines
    )
    assert max(map(len, lines)) <= yaml_writer.WIDTH
