import ast

from tests.tidy.tree import mentioning, tree_of

MARK = "second_tier"


def without_words(tree: ast.Module) -> list[int]:
    """Lines of `second_tier` marks without a text that names the replacing test."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_mark(node.func)]
    fine = {
        id(call.func)
        for call in calls
        if len(call.args) == 1
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
        and len(call.args[0].value.split()) > 1
    }
    marks = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_mark(node)]
    return [mark.lineno for mark in marks if id(mark) not in fine]


def _is_mark(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == MARK


def test_every_second_tier_mark_names_its_replacement() -> None:
    """CI does not run the test, so its mark names what CI runs instead."""
    problems = {path: without_words(tree_of(path)) for path in mentioning((MARK,), "tests")}
    assert not {path: lines for path, lines in problems.items() if lines}


def test_the_check_detects_violations() -> None:
    """A mark without a text, or with another value, is reported."""
    assert without_words(ast.parse("x = pytest.mark.second_tier")) == [1]
    assert without_words(ast.parse("x = pytest.mark.second_tier('slow')")) == [1]
    assert without_words(ast.parse("x = pytest.mark.second_tier(why)")) == [1]
    assert without_words(ast.parse("x = pytest.mark.second_tier('as test_x does')")) == []
