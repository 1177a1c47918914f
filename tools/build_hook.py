"""Build hook of hatchling (see pyproject.toml): moves all packages of a wheel below one name.

In the repository there are five top-level packages; a wheel contains only `medusa_streams`, with
the other four below it. hatchling moves the files; this hook changes their absolute imports. No
other text may name one of these modules: one that does fails the build. Reasons:
docs/decisions/one-name-is-installed.md.

The first half is pure. This file imports none of the packages: a build has only the source tree.
"""

import ast
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ABOVE = "medusa_streams"
MOVED = ("pipeline", "connectors", "brokers", "schemas")
"""Packages of the repository that are below `ABOVE` in a wheel."""
AS_THEY_ARE = "pipeline/projects/"
"""Users' programs that `medusa init` copies unchanged."""

_NAME = re.compile(r"\bpipeline\b(?!/)|(?<![\w./-])(?:connectors|brokers|schemas)\.[a-z_]")
"""A module name in a text. `schemas` alone is a key of documents and a folder of users."""
_EXAMPLE = re.compile(
    rb"^(\s*>>> from )(?=(?:pipeline|connectors|brokers|schemas)[. ])", re.MULTILINE
)


class NamesAModuleError(ValueError):
    """A text names a module in a way that is wrong in a wheel."""


def installed(source: bytes, path: str) -> bytes:
    """The source of a module in a wheel.

    Args:
        source: in the repository.
        path: in the repository.

    Raises:
        NamesAModuleError: it names a module other than in `from … import …`.
    """
    tree = ast.parse(source, filename=path)
    if problems := [f"{path}:{line}: {what}" for line, what in named_otherwise(tree)]:
        raise NamesAModuleError("\n".join(problems))
    lines = source.splitlines(keepends=True)
    places = (_moved_name(node) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    for line, column in sorted((place for place in places if place), reverse=True):
        text = lines[line - 1]
        lines[line - 1] = text[:column] + f"{ABOVE}.".encode() + text[column:]
    return _EXAMPLE.sub(rb"\g<1>" + f"{ABOVE}.".encode(), b"".join(lines))


def named_otherwise(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines with a module name outside of `from … import …` and docstrings."""
    nodes = [*ast.walk(tree)]
    described = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in MOVED:
                    yield node.lineno, f"write `from … import …` in place of `import {alias.name}`"
        if not isinstance(node, ast.Constant) or id(node) in described:
            continue
        if isinstance(node.value, str) and _NAME.search(node.value):
            yield node.lineno, f"make the name from __name__ or __package__: {node.value!r}"


def _moved_name(node: ast.ImportFrom) -> tuple[int, int] | None:
    """Line and column, in bytes, of the name of a moved package; None: it names another one."""
    if node.level or (node.module or "").partition(".")[0] not in MOVED:
        return None
    return node.lineno, node.col_offset + len("from ")


class OneName(BuildHookInterface[BuilderConfig]):
    """Passes the changed modules to hatchling in place of those in the source tree."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the changed modules; an editable install runs the source tree unchanged."""
        self._folder: Path | None = None
        if version == "editable":
            return
        self._folder = Path(tempfile.mkdtemp(prefix="medusa-build-"))
        for file in self.build_config.builder.recurse_selected_project_files():
            place = Path(file.relative_path).as_posix()
            if not place.endswith(".py") or place.startswith(AS_THEY_ARE):
                continue
            source = Path(file.path).read_bytes()
            changed = installed(source, place)
            if changed != source:
                written = self._folder / place
                written.parent.mkdir(parents=True, exist_ok=True)
                written.write_bytes(changed)
                build_data["force_include"][str(written)] = file.distribution_path

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the written modules."""
        del version, build_data, artifact_path
        if self._folder is not None:
            shutil.rmtree(self._folder)
