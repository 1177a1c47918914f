"""Columns and documents shared by the tests of the network."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import pipeline
from pipeline.errors import DocumentError
from pipeline.network.document import (
    SchemaText,
    code_references,
    load,
    read,
    schema_references,
)
from pipeline.network.model import Network
from pipeline.network.scope import Scope, Source
from pipeline.network.types import (
    ArrayType,
    Column,
    Columns,
    DecimalType,
    MapType,
    Scalar,
    StructType,
)
from tests.unit.network.described import CODE, HEAD, SCHEMAS, BoxOf, ErrorsOf

TOLLS = Path(pipeline.__file__).parent / "projects" / "tolls"

COLUMNS: Columns = (
    Column("i", Scalar.INT, nullable=False),
    Column("j", Scalar.INT, nullable=True),
    Column("l", Scalar.LONG, nullable=False),
    Column("f", Scalar.FLOAT, nullable=False),
    Column("d", Scalar.DOUBLE, nullable=False),
    Column("n", DecimalType(10, 2), nullable=False),
    Column("b", Scalar.BOOLEAN, nullable=True),
    Column("t", Scalar.STRING, nullable=False),
    Column("y", Scalar.BYTES, nullable=False),
    Column("day", Scalar.DATE, nullable=False),
    Column("at", Scalar.TIMESTAMP, nullable=False, millis=True),
    Column("exact_at", Scalar.TIMESTAMP, nullable=False),
    Column("xs", ArrayType(Scalar.INT, element_nullable=False), nullable=False),
    Column("m", MapType(Scalar.LONG, value_nullable=False), nullable=False),
    Column("r", StructType("R", (Column("a", Scalar.INT, nullable=True),)), nullable=False),
)

LoadDocument = Callable[..., Network]


@pytest.fixture
def scope() -> Scope:
    """One stream with a column of every type."""
    return Scope((Source(COLUMNS, unreadable={"odd": "a union of INT and STRING"}),))


@pytest.fixture
def sighting() -> str:
    """The schema of the toll network's sightings."""
    return (TOLLS / "schemas" / "sighting.avsc").read_text()


@pytest.fixture
def tolls_text() -> str:
    """The document of the toll network."""
    return (TOLLS / "network.yaml").read_text()


@pytest.fixture
def load_text(sighting: str) -> LoadDocument:
    """Loads a document; streams have the schema of sightings unless `schemas` names another."""

    def loaded(text: str, schemas: Mapping[str, str] | None = None) -> Network:
        given = schemas or {}
        references = schema_references(text, "network.yaml")
        texts = {
            reference: SchemaText(given.get(reference.value, sighting), reference.value)
            for reference in references
        }
        code = {
            reference.box: given.get(reference.file, CODE)
            for reference in code_references(read(text, "network.yaml"))
        }
        return load(text, "network.yaml", texts, code)

    return loaded


@pytest.fixture
def problems_of(load_text: LoadDocument) -> Callable[..., list[str]]:
    """The problems of a document, one text for each."""

    def found(text: str, schemas: Mapping[str, str] | None = None) -> list[str]:
        with pytest.raises(DocumentError) as caught:
            load_text(text, schemas)
        return [str(problem) for problem in caught.value.problems]

    return found


@pytest.fixture
def box_of(load_text: LoadDocument) -> BoxOf:
    """The last box of some lines under `boxes`."""
    return lambda lines: load_text(HEAD + lines, SCHEMAS).boxes[-1]


@pytest.fixture
def errors_of(problems_of: Callable[..., list[str]]) -> ErrorsOf:
    """The errors of some lines under `boxes`, without file, line and box."""
    return lambda lines: [text.split(": ", 1)[1] for text in problems_of(HEAD + lines, SCHEMAS)]
