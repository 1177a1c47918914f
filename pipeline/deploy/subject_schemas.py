"""Schemas of streams that name a subject: the newest, or the deployed one that a state fits. Pure.

A producer may register a version that the deployed state does not fit, such as a symbol more of an
enum with a default. What runs beside that version can be deployed beside it: the stream keeps the
schema that it was deployed with, until a choice for the state adopts the newest.
"""

from collections.abc import Collection, Iterator, Mapping

from pipeline.catalog.records import NetworkVersionRecord
from pipeline.deploy.documents import Document, loaded
from pipeline.deploy.review import inputs_of
from pipeline.errors import DocumentError
from pipeline.ids import FragmentName, StreamName
from pipeline.network.document import schema_references
from pipeline.network.model import ExternalStream
from pipeline.planner.changes import Changes
from pipeline.planner.describe import state_differences
from pipeline.planner.lost_enum_symbols import lost_symbols
from pipeline.planner.plan import Plan
from pipeline.planner.state import Fate


def undecided_fragments(changes: Changes) -> frozenset[FragmentName]:
    """The fragments whose state does not fit, and for which there is no choice."""
    return frozenset(
        FragmentName(item.name) for item in changes.fragments if item.fate is Fate.UNDECIDED
    )


def with_deployed_schemas(
    document: Document,
    deployed: NetworkVersionRecord | None,
    plan: Plan,
    fragments: Collection[FragmentName],
) -> Document | None:
    """The document with the deployed schemas of the subjects that some fragments depend on.

    Args:
        document: the desired document, with the newest schema of each subject.
        deployed: the deployed version; None before the first deploy.
        plan: the document's plan.
        fragments: the fragments whose state does not fit it.

    Returns:
        None if these schemas are the newest, or if the document does not check with them: it may
        use a column that they lack.
    """
    older = _older(document, deployed) if deployed is not None and fragments else {}
    reached = {stream.name for name in fragments for stream in _sources(plan, name)}
    schemas = {name: text for name, text in older.items() if name in reached}
    if not schemas:
        return None
    try:
        return loaded(document.text, document.file, {**document.schemas, **schemas}, document.code)
    except DocumentError:
        return None


def kept_schema_warnings(
    kept: Plan, newest: Plan, fragments: Collection[FragmentName]
) -> Iterator[str]:
    """One warning for each fragment whose state fits the deployed schemas only.

    Args:
        kept: the plan with the deployed schemas.
        newest: the plan with the newest.
        fragments: the fragments.
    """
    before = {fragment.name: fragment for fragment in kept.fragments}
    schemas = {(stream.name, stream.schema_json) for stream in inputs_of(kept)}
    for fragment in newest.fragments:
        old = before.get(fragment.name)
        if old is None or fragment.name not in fragments:
            continue
        subjects = sorted(
            {
                stream.subject
                for stream in _sources(newest, fragment.name)
                if (stream.name, stream.schema_json) not in schemas
            }
        )
        changed = (*state_differences(old, fragment), *lost_symbols(old, fragment))
        yield (
            f"the state of {fragment.name} does not fit the newest schema of "
            f"{', '.join(subjects)} ({'; '.join(changed)}), so the deployed schema is kept; "
            f"`--state {fragment.name}=rebuild` or `=empty` adopts the newest"
        )


def _older(document: Document, deployed: NetworkVersionRecord) -> Mapping[StreamName, str]:
    """The deployed schemas of the streams whose subject has another newest schema."""
    now, then = _subjects(document.text), _subjects(deployed.document)
    return {
        stream: text
        for stream, text in deployed.schemas
        if stream in now and now[stream] == then.get(stream) and text != document.schemas[stream]
    }


def _subjects(text: str) -> Mapping[StreamName, str]:
    """The subjects that the streams of a document name."""
    references = schema_references(text, "")
    return {one.stream: one.value for one in references if one.kind == "subject"}


def _sources(plan: Plan, name: FragmentName) -> Iterator[ExternalStream]:
    """The external streams that a fragment depends on, also by way of other fragments."""
    by_output = {fragment.output.name: fragment for fragment in plan.fragments}
    open_ones = [fragment for fragment in plan.fragments if fragment.name == name]
    while open_ones:
        for stream in open_ones.pop().inputs:
            if isinstance(stream, ExternalStream):
                yield stream
            else:
                open_ones.append(by_output[stream.name])
