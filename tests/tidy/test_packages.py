import ast

from tests.tidy.tree import PACKAGES, mentioning, python_files, tree_of

HOMES = {
    "confluent_kafka": ("brokers/",),
    "kazoo": ("brokers/",),
    "pyspark": ("pipeline/spark/",),
    "fastavro": ("schemas/",),
    "click": ("pipeline/cli/",),
    "sqlglot": ("pipeline/network/",),
    "cryptography": ("pipeline/contracts/documents/",),
    "rfc8785": ("pipeline/contracts/documents/",),
}
USERS_PROGRAMS = ("pipeline/projects/",)
"""Files that `medusa init` copies, in the form of a user's programs."""


def imported(tree: ast.Module) -> set[str]:
    """The top-level names of all imports in a module."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def away_from_home(path: str, tree: ast.Module) -> list[str]:
    """Messages about drivers that a module imports outside of their package."""
    if path.startswith(USERS_PROGRAMS):
        return []
    found = imported(tree)
    return [
        f"{path} imports {driver}, whose home is {', '.join(homes)}"
        for driver, homes in sorted(HOMES.items())
        if driver in found and not path.startswith(homes)
    ]


def beyond_reexports(tree: ast.Module) -> list[int]:
    """Lines of an `__init__.py` that are neither docstring nor import nor `__all__`."""
    first, *_ = [*tree.body, None]
    return [
        node.lineno
        for node in tree.body
        if not isinstance(node, ast.Import | ast.ImportFrom)
        and not (node is first and ast.get_docstring(tree) is not None)
        and not (
            isinstance(node, ast.Assign)
            and [ast.unparse(target) for target in node.targets] == ["__all__"]
        )
    ]


def test_drivers_are_imported_only_in_their_package() -> None:
    """Each driver is imported only below one folder."""
    problems = [
        problem
        for path in mentioning(HOMES, *PACKAGES)
        for problem in away_from_home(path.as_posix(), tree_of(path))
    ]
    assert not problems


def test_package_files_contain_no_code() -> None:
    """An `__init__.py` contains a docstring with the package's purpose, and re-exports."""
    problems = {}
    for path in python_files(*PACKAGES):
        if path.name == "__init__.py":
            lines = beyond_reexports(tree_of(path))
            if lines or ast.get_docstring(tree_of(path)) is None:
                problems[path.as_posix()] = lines
    assert not problems


def test_every_folder_of_modules_is_a_package() -> None:
    """A folder with modules has an `__init__.py`; without one, import-linter does not see it."""
    files = {
        path for path in python_files(*PACKAGES) if not path.as_posix().startswith(USERS_PROGRAMS)
    }
    missing = {path.parent for path in files if path.parent / "__init__.py" not in files}
    assert not missing


def test_the_checks_detect_violations() -> None:
    """A misplaced driver import and code in a package file are reported; allowed ones are not."""
    lazy = ast.parse("def f():\n    from pyspark.sql import types")
    assert away_from_home("brokers/x.py", lazy)
    assert not away_from_home("pipeline/spark/x.py", lazy)
    assert beyond_reexports(ast.parse('"""Doc."""\nimport a\nX = 1')) == [3]
    assert not beyond_reexports(ast.parse('"""Doc."""\nfrom a import b\n__all__ = ["b"]'))
