"""What the registry has under the subjects of a plan, and whether a deploy goes on with it."""

from collections.abc import Collection

from pipeline.deploy.readers import unreadable
from pipeline.deploy.registry_interface import Registry
from pipeline.deploy.review import inputs_of
from pipeline.ids import FragmentName
from pipeline.network.model import ExternalStream
from pipeline.planner.changes import RegisteredSchema, SchemaText
from pipeline.planner.diff import required_schemas
from pipeline.planner.plan import Fragment, Plan
from schemas import records
from schemas.avro import parse
from schemas.meaning import other_meanings


def registered_schemas(
    plan: Plan, going_on: Collection[FragmentName], registry: Registry
) -> tuple[RegisteredSchema, ...]:
    """What the registry has under every subject that the plan writes or reads.

    Args:
        plan: what is wanted.
        going_on: the fragments that are deployed as the plan has them.
        registry: whom to ask.
    """
    found = {wanted.subject: _written(wanted, registry) for wanted in required_schemas(plan)}
    for stream in inputs_of(plan):
        latest = registry.latest(stream.subject)
        if latest is not None and stream.subject not in found:
            found[stream.subject] = _read(stream, latest, plan, going_on, registry)
    return tuple(found.values())


def _read(
    stream: ExternalStream,
    latest: records.RegisteredSchema,
    plan: Plan,
    going_on: Collection[FragmentName],
    registry: Registry,
) -> RegisteredSchema:
    """An input's subject.

    A fragment that cannot read the newest version goes on if it is deployed like that, or can read
    an older one: then only records of the newest become dead letters. Not to be able to read any
    is a mistake in the document.
    """
    which = f"stream {stream.name} cannot read version {latest.version} of {stream.subject}"
    problems: dict[str, None] = {}
    warnings: dict[str, None] = {}
    writer = parse(latest.text)
    for fragment in plan.fragments:
        if stream not in fragment.inputs:
            continue
        reasons = [reason for _, reason in unreadable(writer, stream, fragment)]
        if not reasons:
            continue
        if fragment.name in going_on or _reads_an_older_one(stream, fragment, registry):
            told = (f"{which}: {reason}; its records become dead letters" for reason in reasons)
            warnings |= dict.fromkeys(told)
        else:
            told = (f"{which}, which producers write: {reason}" for reason in reasons)
            problems |= dict.fromkeys(told)
    return RegisteredSchema(stream.subject, latest.text, tuple(problems), tuple(warnings))


def _reads_an_older_one(stream: ExternalStream, fragment: Fragment, registry: Registry) -> bool:
    versions = registry.readable_versions(stream.subject)
    return any(not unreadable(parse(one.text), stream, fragment) for one in versions)


def _written(wanted: SchemaText, registry: Registry) -> RegisteredSchema:
    """A schema that is registered counts as the newest, also when a newer one is there."""
    if registry.lookup(wanted.subject, wanted.schema_json) is not None:
        return RegisteredSchema(wanted.subject, wanted.schema_json)
    latest = registry.latest(wanted.subject)
    if latest is None:
        return RegisteredSchema(wanted.subject, None)
    fits = registry.check(wanted.subject, wanted.schema_json)
    meanings = other_meanings(parse(wanted.schema_json), parse(latest.text))
    return RegisteredSchema(wanted.subject, latest.text, (*fits, *meanings))
