"""Schemas of streams that name a subject: the newest, or the deployed one that a state fits. Pure.

A producer may register a version that the deployed state does not fit, such as a symbol more of an
enum with a default. What runs beside that version can be deployed beside it: the stream keeps the
schema that it was deployed with, until a choice for the state adopts the newest.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

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
from pipeline.planner.plan import Fragment, Plan
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
    schemas = {name: older[name] for name in older.keys() & _source_names(plan, fragments)}
    if not schemas:
        return None
    try:
        return loaded(document.text, document.file, {**document.schemas, **schemas}, document.code)
    except DocumentError:
        return None


def adopts_newest(
    chosen: Iterable[FragmentName], plans: tuple[Plan, Plan], unchosen: Changes
) -> bool:
    """Whether a choice for a state can only be about the newest schemas.

    It is if the state depends on them, and fits the deployed ones. Then all states that depend on
    them need a choice.

    Args:
        chosen: the fragments with a choice.
        plans: the plan with the newest schemas, and that with the deployed ones.
        unchosen: the changes by the second plan without these choices.
    """
    newest, kept = plans
    before = {(stream.name, stream.schema_json) for stream in inputs_of(kept)}
    fates = {item.name: item.fate for item in unchosen.fragments}
    stateful = {fragment.name for fragment in kept.fragments if fragment.stateful_box is not None}
    return any(
        fates.get(name, Fate.UNDECIDED) in {None, Fate.KEPT}
        and any((s.name, s.schema_json) not in before for s in _sources(newest, name))
        for name in chosen
        if name in stateful
    )


def kept_schema_warning(kept: Plan, newest: Plan, fragments: Collection[FragmentName]) -> str:
    """The warning that states fit the deployed schemas only, with the choices for the newest.

    Args:
        kept: the plan with the deployed schemas.
        newest: the plan with the newest.
        fragments: the fragments with these states.
    """
    before = {fragment.name: fragment for fragment in kept.fragments}
    deployed = {(stream.name, stream.schema_json) for stream in inputs_of(kept)}
    names = [one.name for one in newest.fragments if one.name in fragments and one.name in before]
    sources = (stream for name in names for stream in _sources(newest, name))
    otherwise = [s for s in sources if (s.name, s.schema_json) not in deployed]
    subjects = sorted({stream.subject for stream in otherwise})
    changes = dict.fromkeys(
        change
        for fragment in newest.fragments
        if fragment.name in names
        for change in _state_changes(before[fragment.name], fragment)
    )
    reached = {stream.name for stream in otherwise}
    readers = [f.name for f in newest.fragments if reached & _source_names(newest, (f.name,))]
    choices = " ".join(f"--state {name}=rebuild" for name in names)
    return (
        f"the state of {', '.join(names)} does not fit the newest schema of "
        f"{', '.join(subjects)} ({'; '.join(changes)}), so the deployed schema is kept, for "
        f"{', '.join(readers)}; "
        f"`{choices}`, or `=empty`, adopts the newest"
    )


def _state_changes(old: Fragment, new: Fragment) -> tuple[str, ...]:
    return (*state_differences(old, new), *lost_symbols(old, new))


def _older(document: Document, deployed: NetworkVersionRecord) -> Mapping[StreamName, str]:
    """The deployed schemas of the streams whose subject has another newest schema."""
    references = schema_references(deployed.document, "")
    before = {one.stream: one.value for one in references if one.kind == "subject"}
    return {
        stream: text
        for stream, text in deployed.schemas
        if stream in document.subjects
        and document.subjects[stream] == before.get(stream)
        and text != document.schemas[stream]
    }


def _source_names(plan: Plan, fragments: Iterable[FragmentName]) -> frozenset[StreamName]:
    return frozenset(stream.name for name in fragments for stream in _sources(plan, name))


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
