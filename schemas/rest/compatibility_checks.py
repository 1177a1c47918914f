"""Endpoints of compatibility checks: against one version, or as for a registration. Pure."""

from schemas.json_value import Json, JsonObject
from schemas.registry.judge import problems, relevant
from schemas.registry.lookup import numbered
from schemas.registry.prepare import LATEST, prepared
from schemas.registry.refused import BadSchemaError, NoVersionError
from schemas.registry.register import candidate, candidates
from schemas.registry.scopes import config_in_force
from schemas.registry.state import State, Versions
from schemas.rest.call import Call
from schemas.rest.subjects import check_compared, sent_by


def with_version(state: State, call: Call) -> Json:
    """Check a schema against one version."""
    number = call.version
    one = numbered(state, call.subject, number)
    if one is None and number != LATEST:
        raise NoVersionError(number)
    return _answer(state, call, (one,) if one else ())


def with_all(state: State, call: Call) -> Json:
    """Check a schema as a registration does."""
    return _answer(state, call, state.versions(call.subject))


def _answer(state: State, call: Call, versions: Versions) -> Json:
    verbose = call.flag("verbose")
    try:
        found = _problems(state, call, versions)
    except BadSchemaError as error:
        if not verbose:
            raise
        found = (error.message,)
    answer: JsonObject = {"is_compatible": not found}
    return {**answer, "messages": list(found)} if verbose else answer


def _problems(state: State, call: Call, versions: Versions) -> tuple[str, ...]:
    name, given = call.subject, sent_by(state, call)
    check_compared(state, call, versions)
    if not given.text.strip():
        raise BadSchemaError("Empty schema")
    config = config_in_force(state, name)
    normal = call.flag("normalize") or config.normalize is True
    one = prepared(state, name, given, normal=normal, new=config.validate_new is not False)
    return problems(config, candidate(one), candidates(state, name, relevant(config, versions)))
