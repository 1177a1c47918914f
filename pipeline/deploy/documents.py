"""Network documents: reading with all schemas and functions that they name, and planning.

A deployed version is planned again from the catalog's record in the same way, so that both can be
compared without the user's files.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipeline.catalog.records import NetworkVersionRecord
from pipeline.deploy import python_files
from pipeline.deploy.functions import try_functions
from pipeline.errors import DocumentError, InputError, Problem, SchemaError
from pipeline.ids import BoxName, ParticipantId, StreamName
from pipeline.network import document
from pipeline.network.document import CodeReference, SchemaReference, SchemaText
from pipeline.network.model import Network
from pipeline.network.written import Place
from pipeline.planner import planner
from pipeline.planner.plan import Plan
from schemas.avro import parse

SubjectReader = Callable[[str], str | None]
"""Function: a subject's newest schema; None if the registry has none. Called only when needed."""


@dataclass(frozen=True, slots=True)
class Document:
    """A valid document.

    Args:
        file: its name, for messages.
        text: the YAML text; generated from the description, if the file is in Python.
        schemas: the Avro text of every external stream.
        network: the described network.
        code: the text of the Python file of every box that names one.
        subjects: the subjects of the streams whose schema is the newest in the registry; empty for
            a deployed version, whose schemas are those of its deploy.
        places: where each box is written, for messages; empty for a deployed version.
    """

    file: str
    text: str
    schemas: Mapping[StreamName, str]
    network: Network
    code: Mapping[BoxName, str] = field(default_factory=dict)
    subjects: Mapping[StreamName, str] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)


def read_document(path: Path, read_subject: SubjectReader) -> Document:
    """Read and validate a document, in YAML or Python, with its schemas and functions.

    Raises:
        InputError: the file does not exist, or cannot be read.
        DocumentError: contains every mistake in it and in its schemas; if there are none, those in
            its functions.
        RetryError: a function could not be tried in time.
        UnavailableError: it names a subject and the registry does not answer.
    """
    text = _read(path)
    if path.suffix == python_files.SUFFIX:
        written = python_files.read_python(path)
        text = python_files.text_of(written)
    else:
        written = document.read(text, str(path))
    references = document.references(written)
    found = {reference: _checked(_fetch(reference, path, read_subject)) for reference in references}
    files = document.code_references(written)
    code = {reference.box: _code_file(reference, path) for reference in files}
    network = document.check(written, found, code)
    problems = try_functions(network, written.file, document.function_lines(written))
    if problems:
        raise DocumentError(written.located(problems))
    texts = {r.stream: s.text for r, s in found.items() if isinstance(s, SchemaText)}
    kept = {box: source for box, source in code.items() if isinstance(source, str)}
    subjects = {one.stream: one.value for one in references if one.kind == "subject"}
    return Document(str(path), text, texts, network, kept, subjects, written.box_places())


def plan_document(of: Document, owner: ParticipantId) -> Plan:
    """Plan a document for the participant who deploys it.

    Raises:
        DocumentError: by the planner; its problems have the lines of their boxes.
    """
    try:
        return planner.plan(of.network, owner)
    except DocumentError as error:
        places = of.places
        raise DocumentError(
            tuple(
                replace(one, file=places[one.box].file, line=places[one.box].line)
                if one.box in places and not one.line
                else one
                for one in error.problems
            )
        ) from error


def replan(record: NetworkVersionRecord) -> Plan:
    """Plan a deployed version again, from its record in the catalog alone.

    Raises:
        DocumentError: another version of this program deployed it, and this one cannot read it.
    """
    return planner.plan(deployed_document(record).network, record.network.participant)


def replan_or_none(record: NetworkVersionRecord | None) -> Plan | None:
    """The plan of a deployed version; None without a record, or if this program cannot plan it."""
    try:
        return None if record is None else replan(record)
    except DocumentError:
        return None


def deployed_document(record: NetworkVersionRecord) -> Document:
    """The document of a deployed version, with its schemas as deployed.

    Raises:
        DocumentError: another version of this program deployed it, and this one cannot read it.
    """
    file = f"network {record.network}, version {record.version}"
    return loaded(record.document, file, dict(record.schemas), dict(record.code))


def loaded(
    text: str, file: str, schemas: Mapping[StreamName, str], code: Mapping[BoxName, str]
) -> Document:
    """A document from the texts of all that it names.

    Raises:
        DocumentError: with every mistake in it.
    """
    found: dict[SchemaReference, SchemaText | Problem] = {
        reference: SchemaText(schemas[reference.stream], file)
        for reference in document.schema_references(text, file)
        if reference.stream in schemas
    }
    network = document.load(text, file, found, code)
    return Document(file, text, schemas, network, code)


def _fetch(
    reference: SchemaReference, path: Path, read_subject: SubjectReader
) -> SchemaText | Problem:
    if reference.kind == "path":
        return _schema_file(reference, path)
    text = read_subject(reference.value)
    if text is not None:
        return SchemaText(text, f"subject {reference.value}")
    return Problem(
        f"stream {reference.stream}: the registry has no subject {reference.value}",
        hint="register it with `medusa schema register`, or name a file with schema: instead.",
    )


def _schema_file(reference: SchemaReference, path: Path) -> SchemaText | Problem:
    file = path.parent / reference.value
    try:
        return SchemaText(file.read_text(encoding="utf-8"), reference.value)
    except (OSError, UnicodeDecodeError) as error:
        nearby = sorted(file.parent.glob("*.avsc")) or sorted(path.parent.rglob("*.avsc"))
        return Problem(
            f"stream {reference.stream}: the schema {reference.value} cannot be read: "
            f"{_reason(error)}",
            choices=tuple(str(p.relative_to(path.parent)) for p in nearby if _below(p, path)),
        )


def _code_file(reference: CodeReference, path: Path) -> str | Problem:
    file = path.parent / reference.file
    try:
        return file.read_text(encoding="utf-8-sig")  # Python ignores a byte order mark, too
    except (OSError, UnicodeDecodeError) as error:
        nearby = sorted(file.parent.glob("*.py"))
        return Problem(
            f"{reference.file} cannot be read: {_reason(error)}",
            choices=tuple(str(p.relative_to(path.parent)) for p in nearby if _below(p, path)),
        )


def _below(file: Path, document_path: Path) -> bool:
    return file.is_relative_to(document_path.parent)


def _checked(found: SchemaText | Problem) -> SchemaText | Problem:
    """The schema if it is valid Avro, else the problem."""
    if isinstance(found, Problem):
        return found
    try:
        parse(found.text)
    except SchemaError as error:
        return Problem(
            f"{found.origin} is no Avro schema: {error.place}: {error.message}", hint=error.hint
        )
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(
            "there is no such document",
            place=str(path),
            hint="name one, as in `medusa plan FILE`, or begin with `medusa init tolls`.",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the document cannot be read: {_reason(error)}", place=str(path)
        ) from error


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"
