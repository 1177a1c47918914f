"""Endpoints of schemas by ids and GUIDs. Pure."""

from collections.abc import Iterable

from schemas.json_value import Json
from schemas.registry.content import Guid, guid_in
from schemas.registry.lookup import Found, by_guid, by_id, of_user, users
from schemas.registry.names import SubjectName
from schemas.registry.refused import NoSchemaError
from schemas.registry.state import State, User
from schemas.rest.bodies import TYPES, shown
from schemas.rest.call import Call, Text, denied
from schemas.rest.subjects import qualified, tagged, written


def types(_: State, __: Call) -> Json:
    """The supported types of schemas."""
    return list(TYPES)


def by_its_id(state: State, call: Call) -> Json:
    """A schema by its id, and one version that has it."""
    one = _of_id(state, call)
    answer = {**shown(one), "schema": written(state, call, one)}
    answer.pop("id")
    if call.flag("fetchMaxId"):
        answer["maxId"] = state.last_ids[one.name.context]
    return tagged(state, call, qualified(call, answer, one.name), one)


def text_by_id(state: State, call: Call) -> Text:
    """The text of a schema by its id."""
    return Text(written(state, call, _of_id(state, call)))


def _of_id(state: State, call: Call) -> Found:
    return _readable(state, call, by_id(state, call.id, _where(call), reads=call.reads))


def subjects_of_id(state: State, call: Call) -> Json:
    """Subjects that use an id."""
    return call.page([str(name) for name in _users(state, call)])


def versions_of_id(state: State, call: Call) -> Json:
    """Versions that have an id: of each subject the newest."""
    listed = _users(state, call).items()
    return call.page([{"subject": str(name), "version": number} for name, number in listed])


def by_its_guid(state: State, call: Call) -> Json:
    """A schema by its GUID."""
    one = _first_readable(state, call, by_guid(state, _guid(call), _where(call).context))
    answer = qualified(call, {**shown(one), "schema": written(state, call, one)}, one.name)
    return {key: value for key, value in answer.items() if key not in {"subject", "version", "id"}}


def ids_of_guid(state: State, call: Call) -> Json:
    """The id that a GUID has in each context."""
    some = [user for user in by_guid(state, _guid(call)) if call.reads(user[0])]
    ids = {(user[0].context, of_user(state, user).version.id) for user in some}
    return [{"context": context, "id": number} for context, number in sorted(ids)]


def _guid(call: Call) -> Guid:
    """The GUID in the path."""
    guid = guid_in(call.path["guid"])
    if guid is None:
        raise NoSchemaError(call.path["guid"])
    return guid


def _users(state: State, call: Call) -> dict[SubjectName, int]:
    """Subjects that use an id, and the newest version of each; Confluent does not name the id."""
    try:
        listed = users(state, call.id, _where(call), deleted=call.flag("deleted"), reads=call.reads)
    except NoSchemaError:
        raise NoSchemaError from None
    return {name: number for name, number in listed if call.reads(name)}


def _readable(state: State, call: Call, one: Found) -> Found:
    """The same schema under a subject that the user may read."""
    if call.reads(one.name):
        return one
    return _first_readable(
        state, call, users(state, one.version.id, one.name.whole_context, deleted=True)
    )


def _first_readable(state: State, call: Call, listed: Iterable[User]) -> Found:
    """The first version that the user may read."""
    for user in listed:
        if call.reads(user[0]):
            return of_user(state, user)
    raise denied("read", SubjectName.parse(""))


def _where(call: Call) -> SubjectName:
    return SubjectName.parse(call.text("subject"))
