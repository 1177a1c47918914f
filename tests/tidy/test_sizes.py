import ast
from pathlib import Path

from tests.tidy.tree import python_files, text_of, tree_of

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 500
PARAMETERS_MAX = 6

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> list[Function]:
    """Every function and method, inner ones too."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def too_long(tree: ast.Module) -> list[str]:
    """Messages about functions over the limit."""
    return [
        f"{found.lineno}: {found.name} has {lines} lines"
        for found in functions(tree)
        if (lines := (found.end_lineno or found.lineno) - found.lineno + 1) > FUNCTION_LINES_MAX
    ]


def too_many_parameters(tree: ast.Module) -> list[str]:
    """Messages about functions over the limit: the order of many parameters is hard to recall."""
    found = []
    for function in functions(tree):
        names = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
        if names[:1] in (["self"], ["cls"]):
            names = names[1:]
        if len(names) > PARAMETERS_MAX:
            found.append(f"{function.lineno}: {function.name} has {len(names)} parameters")
    return found


def of_all(check: str, problems: dict[Path, list[str]]) -> str:
    """The problems of all files as one text; empty if there are none."""
    lines = [f"  {path}:{problem}" for path, found in problems.items() for problem in found]
    return f"{check}:\n" + "\n".join(lines) if lines else ""


def test_functions_have_at_most_70_lines() -> None:
    """Of all Python files."""
    assert not of_all("too long", {path: too_long(tree_of(path)) for path in python_files()})


def test_modules_have_at_most_500_lines() -> None:
    """Of all Python files."""
    lengths = {path: len(text_of(path).splitlines()) for path in python_files()}
    assert not {path: count for path, count in lengths.items() if count > MODULE_LINES_MAX}


def test_functions_have_at_most_6_positional_parameters() -> None:
    """Of all Python files."""
    problems = {path: too_many_parameters(tree_of(path)) for path in python_files()}
    assert not of_all("too many parameters", problems)


def test_the_checks_detect_violations() -> None:
    """A function over each limit is reported, one at the limit is not."""
    body = "\n".join(["    pass"] * FUNCTION_LINES_MAX)
    at_limit = "\n".join(["    pass"] * (FUNCTION_LINES_MAX - 1))
    assert too_long(ast.parse(f"def f():\n{body}")) == ["1: f has 71 lines"]
    assert not too_long(ast.parse(f"def f():\n{at_limit}"))
    assert too_many_parameters(ast.parse("def f(a, b, c, d, e, g, h): ..."))
    assert not too_many_parameters(ast.parse("class C:\n def f(self, a, b, c, d, e, g, *, h): ..."))
