"""Endpoints of subjects and their versions. Pure."""

from collections.abc import Iterable
from typing import Final

from schemas.json_value import Json, JsonObject, list_of, object_of, text_of
from schemas.registry.content import Guid, Reference
from schemas.registry.delete import delete_subject, delete_version
from schemas.registry.lookup import (
    Found,
    found,
    lookup,
    numbered,
    of_user,
    referrers,
    subjects,
    version,
    visible,
    with_metadata,
)
from schemas.registry.names import SubjectName
from schemas.registry.prepare import Sent, reached, stored, tags_of, whole_schema
from schemas.registry.refused import NoVersionError
from schemas.registry.register import Registered, register
from schemas.registry.retag import retag, tagged_version
from schemas.registry.state import Decided, State, Versions
from schemas.rest.bodies import described, retagging, sent, shown, tags_json
from schemas.rest.call import Answer, Call, Text
from schemas.rest.errors import HttpError

_UNREADABLE: Final = "User is denied operation Read on a subject that the schema refers to"


def list_subjects(state: State, call: Call) -> Json:
    """Names of subjects."""
    prefix = call.text("subjectPrefix", ":*:")
    only = call.flag("deletedOnly")
    listed = subjects(state, prefix, deleted=call.flag("deleted"), only_deleted=only)
    return [*call.page([str(name) for name in listed if call.reads(name)])]


def look_up(state: State, call: Call) -> Json:
    """The version of a registered schema."""
    one = lookup(
        state,
        call.subject,
        sent_by(state, call),
        normal=call.flag("normalize"),
        deleted=call.flag("deleted"),
        reads=call.reads,
    )
    return _answer(state, call, one)


def add_version(state: State, call: Call) -> Decided[Answer]:
    """Register a schema."""
    check_compared(state, call, state.versions(call.subject))
    made = register(
        state,
        call.subject,
        sent_by(state, call),
        normal=call.flag("normalize"),
        now_ms=call.now_ms,
    )
    after = state.after(made.changes)
    return Decided({**_added(made), "schema": written(after, call, _found(made))}, made.changes)


def retag_version(state: State, call: Call) -> Decided[Answer]:
    """Register a version with other tags."""
    check_compared(state, call, state.versions(call.subject))
    one = tagged_version(state, call.subject, call.version)
    made = retag(state, call.subject, one, retagging(call.body), now_ms=call.now_ms)
    return Decided(_added(made), made.changes)


def _added(made: Registered) -> JsonObject:
    one = made.version
    return {"id": one.id, "version": one.number, **described(made.content, one.guid)}


def _found(made: Registered) -> Found:
    return Found(made.name, made.version, made.content)


def remove_subject(state: State, call: Call) -> Decided[Answer]:
    """Delete all versions of a subject."""
    permanent = call.flag("permanent")
    gone, changes = delete_subject(state, call.subject, permanent=permanent, now_ms=call.now_ms)
    return Decided(list(gone), changes)


def list_versions(state: State, call: Call) -> Json:
    """Numbers of a subject's versions; deleted ones as negative numbers on request."""
    only, negative = call.flag("deletedOnly"), call.flag("deletedAsNegative")
    deleted = only or negative or call.flag("deleted")
    listed = visible(state, call.subject, deleted=deleted)
    return call.page(
        [-v.number if negative and v.deleted else v.number for v in listed if v.deleted or not only]
    )


def one_version(state: State, call: Call) -> Json:
    """A version of a subject."""
    one = _version(state, call)
    return tagged(state, call, qualified(call, _answer(state, call, one), one.name), one)


def schema_of_version(state: State, call: Call) -> Text:
    """The text of the schema of a version."""
    return Text(written(state, call, _version(state, call)))


def _version(state: State, call: Call) -> Found:
    deleted = call.flag("deleted")
    return version(state, call.subject, call.version, deleted=deleted, reads=call.reads)


def remove_version(state: State, call: Call) -> Decided[Answer]:
    """Delete a version of a subject."""
    gone, changes = delete_version(
        state,
        call.subject,
        call.version,
        permanent=call.flag("permanent"),
        now_ms=call.now_ms,
    )
    return Decided(gone, changes)


def referenced_by(state: State, call: Call) -> Json:
    """Ids of the schemas that refer to a version."""
    one = numbered(state, call.subject, call.version, deleted=True)
    if one is None:
        visible(state, call.subject, deleted=True)
        raise NoVersionError(call.version)
    users = referrers(state, call.subject, one.number, deleted=call.flag("deleted"))
    some = [user for user in users if call.reads(user[0])]
    ids = {(user[0].context, of_user(state, user).version.id) for user in some}
    return call.schemas_page([number for _, number in sorted(ids)])


def by_metadata(state: State, call: Call) -> Json:
    """The newest version with the requested properties."""
    pairs = list(zip(call.texts("key"), call.texts("value"), strict=False))
    one = with_metadata(state, call.subject, pairs, deleted=call.flag("deleted"))
    return _answer(state, call, one)


def sent_by(state: State, call: Call) -> Sent:
    """The schema in the body; checks that the user may read its references.

    Raises:
        HttpError: 403: the user may not.
        RegistryRefusal: as `sent`.
    """
    given = sent(call.body)
    call.check_reads(*(call.subject.resolve(one.subject) for one in given.references))
    _check_reached(state, call, call.subject, given.references)
    return given


def check_compared(state: State, call: Call, versions: Versions) -> None:
    """Check that the user may read the references of the subject's versions.

    Answers reveal parts of the compared schemas: incompatible types, existing tags.

    Raises:
        HttpError: 403: the user may not.
    """
    references = {each for one in versions for each in state.content(one.guid).references}
    _check_reached(state, call, call.subject, references)


def _check_reached(
    state: State, call: Call, name: SubjectName, references: Iterable[Reference]
) -> None:
    """Check that the user may read all direct and indirect references; the error names none.

    Raises:
        HttpError: 403: the user may not.
    """
    if not all(map(call.reads, reached(state, name, references))):
        raise HttpError(403, 40301, _UNREADABLE)


def _answer(state: State, call: Call, one: Found) -> JsonObject:
    return {**shown(one), "schema": written(state, call, one)}


def written(state: State, call: Call, one: Found) -> str:
    """The text of a schema; `format=resolved` inlines its references."""
    if call.resolved and one.content.references:
        _check_reached(state, call, one.name, one.content.references)
        return whole_schema(stored(state, one.name, one.content))
    return one.content.text


def qualified(call: Call, answer: JsonObject, name: SubjectName) -> JsonObject:
    """An answer; with `referenceFormat=qualified` its references have contexts."""
    if call.text("referenceFormat").casefold() != "qualified" or "references" not in answer:
        return answer
    listed: list[Json] = [
        {**one, "subject": name.qualified(text_of(one["subject"]))}
        for one in map(object_of, list_of(answer["references"]))
    ]
    return {**answer, "references": listed}


def tagged(state: State, call: Call, answer: JsonObject, one: Found) -> JsonObject:
    """An answer with the entities that have one of the tags of `findTags`, or any for `*`."""
    searched = set(call.texts("findTags"))
    if not searched:
        return answer
    _check_reached(state, call, one.name, one.content.references)
    tags = tags_of(stored(state, one.name, one.content))
    some = tuple(each for each in tags if "*" in searched or searched.intersection(each[1]))
    return {**answer, "schemaTags": [*tags_json(some)]} if some else answer


def list_schemas(state: State, call: Call) -> Json:
    """Versions of all subjects with a prefix."""
    deleted, latest = call.flag("deleted"), call.flag("latestOnly")
    listed = []
    names = subjects(state, call.text("subjectPrefix"), deleted=deleted)
    for name in filter(call.reads, names):
        versions = state.versions(name, deleted=deleted)
        listed += [(name, one) for one in (versions[-1:] if latest else versions)]
    rule = call.text("ruleType").casefold()
    some = [
        found(state, name, one)
        for name, one in listed
        if not rule or _has_rule(state, one.guid, rule)
    ]
    aliases = _aliases(state, call) if call.flag("aliases") else {}
    return [
        {**shown(one), **({"aliases": [*aliases[one.name]]} if one.name in aliases else {})}
        for one in call.schemas_page(some)
    ]


def _has_rule(state: State, guid: Guid, kind: str) -> bool:
    """Whether a schema has rules of a kind, or any for `all`."""
    rules = state.content(guid).rules
    names = ("migration", "domain", "encoding")
    lists = zip(names, rules.lists, strict=True) if rules else ()
    return any(listed and kind in {"all", name} for name, listed in lists)


def _aliases(state: State, call: Call) -> dict[SubjectName, list[str]]:
    """The aliases that the user may read, sorted, by subject."""
    found_aliases: dict[SubjectName, list[str]] = {}
    for name, config in sorted(state.configs.items(), key=lambda item: str(item[0])):
        if config.alias and call.reads(name):
            found_aliases.setdefault(name.resolve(config.alias), []).append(str(name))
    return found_aliases
