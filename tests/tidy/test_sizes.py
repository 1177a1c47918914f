import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.tidy.tree import python_files, text_of, tree_of

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 500
PARAMETERS_MAX = 6

Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method: where it begins, its extent, its positional parameters."""

    line: int
    name: str
    lines: int
    parameters: int


def functions(tree: ast.Module) -> Iterator[Function]:
    """Every function and method, inner ones too; they are statements, so no expression is read."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, Definition):
            names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
            own = len(names) - (names[:1] in (["self"], ["cls"]))
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield Function(node.lineno, node.name, lines, own)
        holders = ast.stmt | ast.excepthandler | ast.match_case
        left += (child for child in ast.iter_child_nodes(node) if isinstance(child, holders))


@cache
def functions_in(path: Path) -> tuple[Function, ...]:
    """Those of a file."""
    return tuple(functions(tree_of(path)))


def too_long(found: Iterable[Function]) -> list[str]:
    """Messages about functions over the limit."""
    return [
        f"{one.line}: {one.name} has {one.lines} lines"
        for one in found
        if one.lines > FUNCTION_LINES_MAX
    ]


def too_many_parameters(found: Iterable[Function]) -> list[str]:
    """Messages about functions over the limit: the order of many parameters is hard to recall."""
    return [
        f"{one.line}: {one.name} has {one.parameters} parameters"
        for one in found
        if one.parameters > PARAMETERS_MAX
    ]


def of_all(check: str, problems: dict[Path, list[str]]) -> str:
    """The problems of all files as one text; empty if there are none."""
    lines = [f"  {path}:{problem}" for path, found in problems.items() for problem in found]
    return f"{check}:\n" + "\n".join(lines) if lines else ""


def test_functions_have_at_most_70_lines() -> None:
    """Of all Python files."""
    assert not of_all("too long", {path: too_long(functions_in(path)) for path in python_files()})


def test_modules_have_at_most_500_lines() -> None:
    """Of all Python files."""
    lengths = {path: len(text_of(path).splitlines()) for path in python_files()}
    assert not {path: count for path, count in lengths.items() if count > MODULE_LINES_MAX}


def test_functions_have_at_most_6_positional_parameters() -> None:
    """Of all Python files."""
    problems = {path: too_many_parameters(functions_in(path)) for path in python_files()}
    assert not of_all("too many parameters", problems)


def test_the_checks_detect_violations() -> None:
    """A function over each limit is reported, one at the limit is not."""
    body = "\n".join(["    pass"] * FUNCTION_LINES_MAX)
    at_limit = "\n".join(["    pass"] * (FUNCTION_LINES_MAX - 1))
    assert too_long(functions(ast.parse(f"def f():\n{body}"))) == ["1: f has 71 lines"]
    assert not too_long(functions(ast.parse(f"def f():\n{at_limit}")))
    many = "def f(a, b, c, d, e, g, h): ..."
    assert too_many_parameters(functions(ast.parse(many)))
    inner = f"def o():\n  try: ...\n  except E:\n   match x:\n    case 1:\n     {many}"
    assert too_many_parameters(functions(ast.parse(inner))) == ["6: f has 7 parameters"]
    allowed = "class C:\n def f(self, a, b, c, d, e, g, *, h): ..."
    assert not too_many_parameters(functions(ast.parse(allowed)))
