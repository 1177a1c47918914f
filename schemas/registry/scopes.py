"""Which configuration and which mode are in force for a name. Pure.

From narrow to wide: the subject; its context (for the default context: what is set for the
registry as a whole); `:.__GLOBAL:`, for all contexts; the defaults. Of a configuration each field
comes from the narrowest scope that sets it, and so does the mode; but `READONLY_OVERRIDE` of the
whole registry none can lift.
"""

from schemas.registry.config import DEFAULT_CONFIG, DEFAULT_MODE, Config, Mode
from schemas.registry.names import DEFAULT, GLOBAL, SubjectName
from schemas.registry.refused import NotPermittedError
from schemas.registry.state import State

ROOT = SubjectName(DEFAULT, "")
EVERYWHERE = SubjectName(GLOBAL, "")


def scopes(name: SubjectName) -> tuple[SubjectName, ...]:
    """The scopes that decide for a name, the narrowest first."""
    return tuple(dict.fromkeys((name, name.whole_context, EVERYWHERE)))


def config_in_force(state: State, name: SubjectName) -> Config:
    """The configuration of a name with everything that wider scopes decide."""
    made = state.configs.get(name, Config())
    for scope in scopes(name)[1:]:
        made = made.over(state.configs.get(scope, Config()))
    return made.over(DEFAULT_CONFIG)


def mode_in_force(state: State, name: SubjectName) -> Mode:
    """The mode of a name."""
    for everywhere in (ROOT, EVERYWHERE):
        if state.modes.get(everywhere) is Mode.READONLY_OVERRIDE:
            return Mode.READONLY_OVERRIDE
    return next((state.modes[s] for s in scopes(name) if s in state.modes), DEFAULT_MODE)


def check_writable(state: State, name: SubjectName) -> None:
    """Make sure that a scope may be changed.

    Raises:
        NotPermittedError: it is read-only.
    """
    if mode_in_force(state, name).read_only:
        raise NotPermittedError(f"Subject {told(name)} is in read-only mode")


def told(name: SubjectName) -> str:
    """A name and its context, as refusals of modes tell them."""
    subject = "null" if name.is_default else str(name)
    return f"{subject} in context {name.prefix}"


def aliased(state: State, name: SubjectName) -> SubjectName:
    """The subject that a name stands for: one alias is followed, not an alias of an alias."""
    own = state.configs.get(name)
    return name.beside(own.alias) if own is not None and own.alias else name
