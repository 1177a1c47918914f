"""YAML parser with line numbers."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.yaml_reader import YamlList, YamlMap, YamlScalar, read


def messages(text: str) -> list[str]:
    """The problems of a text."""
    return [f"{p.line}: {p.message}" for p in read(text, "f.yaml")[1]]


def test_scalars_stay_as_written_and_have_their_line() -> None:
    """`on` and `1.0` are words; an empty value is marked."""
    tree, problems = read("on: yes\nb: 1.0\nc:\nd: ''\n", "f.yaml")
    assert problems == ()
    assert isinstance(tree, YamlMap)
    assert [(k.text, k.line) for k, _ in tree.entries] == [("on", 1), ("b", 2), ("c", 3), ("d", 4)]
    values = [v for _, v in tree.entries]
    assert values[0] == YamlScalar("yes", 1)
    assert values[1] == YamlScalar("1.0", 2)
    scalars = [v for v in values if isinstance(v, YamlScalar)]
    assert [v.null for v in scalars] == [False, False, True, False]
    assert [v.quoted for v in scalars] == [False, False, False, True]


def test_surrogate_pairs_are_one_character() -> None:
    """JSON writers may write a character as two escapes; one of them alone is no text."""
    tree, problems = read('a: "\\ud83d\\ude00"\n', "f.yaml")
    assert problems == ()
    assert isinstance(tree, YamlMap)
    assert tree.entries[0][1] == YamlScalar("\U0001f600", 1)
    assert messages('a: 1\nb: "\\ud800"\n') == ["2: the text has half of a surrogate pair"]


def test_a_repeated_key_is_reported_with_both_lines() -> None:
    """YAML would use the last one silently."""
    assert messages("a: 1\nb: 2\na: 3\n") == ["3: a is written twice, first in line 1"]


def test_a_syntax_error_names_its_line() -> None:
    """The line to be corrected."""
    (problem,) = read("a: 1\nb: [1, 2\nc: 3\n", "f.yaml")[1]
    assert problem.line == 3
    assert problem.message.startswith("not YAML: ")


def test_a_tab_is_explained() -> None:
    """Tabs are the most common error and the least visible one."""
    (problem,) = read("a:\n\tb: 1\n", "f.yaml")[1]
    assert (problem.line, problem.hint) == (2, "indent with spaces")


def test_an_empty_document_is_a_problem() -> None:
    """It is no network."""
    assert messages("# only a comment\n") == ["1: the document is empty"]


def test_two_documents_are_a_problem() -> None:
    """One file, one network."""
    assert len(messages("a: 1\n---\nb: 2\n")) == 1


def test_an_alias_is_resolved() -> None:
    """Anchors work as in any YAML."""
    tree, problems = read("a: &x [1, 2]\nb: *x\n", "f.yaml")
    assert problems == ()
    assert isinstance(tree, YamlMap)
    assert isinstance(tree.entries[1][1], YamlList)
    assert tree.entries[0][1] == tree.entries[1][1]


def test_an_alias_to_its_own_parent_is_reported() -> None:
    """A loop of aliases ends with an error."""
    assert messages("a: &x [*x]\n") == ["1: an alias points to what it is part of"]


def test_merge_keys_and_list_keys_are_reported() -> None:
    """Unsupported features are reported, not skipped."""
    assert messages("<<: {a: 1}\n? [a]\n: 1\n") == [
        "1: merge keys (<<) are not supported",
        "2: a key must be a plain word",
    ]


def test_depth_and_length_are_bounded() -> None:
    """A hostile document costs little."""
    assert messages("[" * 5_000) == ["1: the document is nested more than 20 deep"]
    assert messages("[" + "a, " * 30_000 + "]") == ["1: the document is too long"]


@given(st.text(max_size=200))
def test_any_text_is_read_or_explained(text: str) -> None:
    """No text makes the reader raise."""
    tree, problems = read(text, "f.yaml")
    assert tree is not None or problems
