import ast
import tomllib
from pathlib import Path

import pytest

from tests.tidy.tree import PACKAGES, text_of
from tools.build_hook import (
    ABOVE,
    MOVED,
    NamesAModuleError,
    installed,
    named_otherwise,
)

SOURCE = '''"""Ä module, see pipeline/cli and `pipeline.cli`.

>>> from pipeline.errors import Problem
"""

from json import dumps

from brokers import ports
from pipeline.cli import modules
from pipelines import x
from schemas.avro import (
    parse,
)


def lazy() -> None:
    """Imports late."""
    from pipeline.spark import held; from schemas import wire
'''
INSTALLED = '''"""Ä module, see pipeline/cli and `pipeline.cli`.

>>> from medusa_streams.pipeline.errors import Problem
"""

from json import dumps

from medusa_streams.brokers import ports
from medusa_streams.pipeline.cli import modules
from pipelines import x
from medusa_streams.schemas.avro import (
    parse,
)


def lazy() -> None:
    """Imports late."""
    from medusa_streams.pipeline.spark import held; from medusa_streams.schemas import wire
'''


def refused(source: str) -> list[int]:
    """The lines for which a build would fail."""
    return [line for line, _ in named_otherwise(ast.parse(source))]


def test_only_imports_are_changed() -> None:
    """At any place of a line; foreign imports are unchanged, and so are descriptions."""
    assert installed(SOURCE.encode(), "pipeline/x.py").decode() == INSTALLED


def test_an_import_that_binds_the_top_name_is_refused() -> None:
    """`import pipeline.x` binds `pipeline`, which does not exist in an installation."""
    assert refused("import os\nimport pipeline.x\nimport brokers as b") == [2, 3]
    with pytest.raises(NamesAModuleError, match=r"pipeline/x\.py:1: write `from … import …`"):
        installed(b"import schemas", "pipeline/x.py")


@pytest.mark.parametrize(
    "text",
    [
        '"pipeline"',
        '"pipeline.cli.main"',
        'f"pipeline.cli.{verb}"',
        '["-m", "schemas.server"]',
        '''"No module named 'pipeline"''',
    ],
)
def test_a_text_that_names_a_module_is_refused(text: str) -> None:
    """It has to be computed from the name of the module."""
    assert refused(f"x = {text}") == [1]


@pytest.mark.parametrize(
    "text",
    [
        '"schemas"',
        '"schemas/sighting.avsc"',
        '"docs/reference/schemas.md"',
        '"pipeline/projects"',
        '"the schemas. A broker"',
        'f"{__package__}.main"',
    ],
)
def test_other_texts_are_accepted(text: str) -> None:
    """Folders, keys of documents, sentences."""
    assert refused(f"x = {text}") == []


def test_the_build_contains_all_packages() -> None:
    """A further top-level package would be a second name in an installation."""
    assert {ABOVE, *MOVED} == set(PACKAGES)
    build = tomllib.loads(text_of(Path("pyproject.toml")))["tool"]["hatch"]["build"]["targets"]
    assert set(build["wheel"]["only-include"]) == set(PACKAGES)
    assert set(build["sdist"]["only-include"]) > set(PACKAGES)
    assert build["wheel"]["sources"] == {name: f"{ABOVE}/{name}" for name in MOVED}
