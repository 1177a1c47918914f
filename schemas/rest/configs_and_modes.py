"""Endpoints of configurations, modes and contexts. Pure."""

from schemas.json_value import Json, JsonObject
from schemas.registry.config import config_json, mode_of
from schemas.registry.names import DEFAULT, SubjectName
from schemas.registry.refused import BadModeError
from schemas.registry.state import Decided, State
from schemas.registry.tune import (
    check_empty,
    check_name,
    config_of,
    delete_config,
    delete_mode,
    mode_of_name,
    set_config,
    set_mode,
)
from schemas.rest.call import NOTHING, Answer, Call


def get_config(state: State, call: Call) -> Json:
    """The configuration of a scope."""
    return config_json(config_of(state, call.scope, in_force=call.flag("defaultToGlobal")))


def put_config(state: State, call: Call) -> Decided[Answer]:
    """Change the configuration of a scope."""
    made, changes = set_config(state, call.scope, call.body)
    return Decided(config_json(made, "compatibility"), changes)


def remove_config(state: State, call: Call) -> Decided[Answer]:
    """Remove the configuration of a scope."""
    removed, changes = delete_config(state, call.scope)
    return Decided(config_json(removed), changes)


def get_mode(state: State, call: Call) -> Json:
    """The mode of a scope."""
    return {"mode": mode_of_name(state, call.scope, in_force=call.flag("defaultToGlobal")).value}


def put_mode(state: State, call: Call) -> Decided[Answer]:
    """Set the mode, or remove it with null."""
    if "mode" not in call.body:
        raise BadModeError
    check_name(call.scope)
    given = call.body["mode"]
    mode = None if given is None else mode_of(given)
    answer: JsonObject = {} if given is None else {"mode": given}
    return Decided(answer, set_mode(state, call.scope, mode, force=call.flag("force")))


def remove_mode(state: State, call: Call) -> Decided[Answer]:
    """Remove the mode."""
    removed, changes = delete_mode(state, call.scope, recursive=call.flag("recursive"))
    return Decided({} if removed is None else {"mode": removed.value}, changes)


def list_contexts(state: State, call: Call) -> Json:
    """Contexts with schemas."""
    prefix = call.text("contextPrefix")
    seen = {DEFAULT, *(name.context for name in state.subjects if call.reads(name))}
    return call.page([one for one in state.contexts if one.startswith(prefix) and one in seen])


def remove_context(state: State, call: Call) -> Decided[Answer]:
    """Delete a context: only checks that it is empty, since empty contexts are not stored."""
    given = call.path["context"]
    check_empty(state, SubjectName.parse(given if given.startswith(":.") else f":{given}:"))
    return Decided(NOTHING)
