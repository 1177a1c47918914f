"""Export of a registry and import into another one, with ids and version numbers.

A registry accepts given ids only in mode IMPORT. The mode is set during the import, and restored
also after errors. Existing versions are compared and not changed, so that an import is idempotent
and can be repeated after an interruption.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from pipeline.errors import InputError, MedusaError, RefusedError
from schemas.administration import Administration
from schemas.dump import Dump, Scope
from schemas.entries import SchemaUse, StoredVersion, context_of
from schemas.json_value import JsonObject, text_of
from schemas.registry.config import Mode

Progress = Callable[[str, int, int], None]
"""Called with the step, the number done, and the total."""


def read(
    admin: Administration, prefix: str, progress: Progress
) -> tuple[tuple[StoredVersion, ...], Mapping[Scope, JsonObject], Mapping[Scope, Mode]]:
    """Read all versions of the subjects with a prefix, deleted ones too, and their settings.

    Without a prefix also the settings of the whole registry; or, if the address has a context, of
    that context.
    """
    subjects = admin.subjects(prefix, deleted=True)
    contexts = sorted({context for one in subjects if (context := context_of(one))})
    wider: list[Scope] = [] if prefix else [admin.full("") or None, *contexts]
    scopes = dict.fromkeys((*wider, *subjects))
    configs = {scope: config for scope in scopes if (config := admin.config(scope))}
    modes = {scope: mode for scope in scopes if (mode := admin.own_mode(scope)) is not None}
    versions: list[StoredVersion] = []
    for done, subject in enumerate(subjects):
        progress("reading subjects", done, len(subjects))
        if configs.get(subject, {}).get("alias"):
            continue  # a registry answers with the versions of the other subject
        live = set(admin.version_numbers(subject))
        for number in admin.version_numbers(subject, deleted=True):
            found = admin.version(subject, number, deleted=True)
            if found is not None:
                # Not every registry returns whether a version is deleted.
                versions.append(replace(found, deleted=number not in live))
    return tuple(versions), configs, modes


def in_order(versions: Iterable[StoredVersion]) -> tuple[StoredVersion, ...]:
    """The versions in topological order of references, then by id.

    Raises:
        InputError: references have a cycle.
    """
    known = {one.use: one for one in versions}
    sorter = TopologicalSorter(
        {use: [to for to in one.referred if to in known] for use, one in known.items()}
    )
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " → ".join(str(use) for use in error.args[1])
        raise InputError(f"schemas refer to each other in a circle: {circle}") from error
    found: list[StoredVersion] = []
    while sorter.is_active():
        ready = sorter.get_ready()
        found += sorted((known[use] for use in ready), key=lambda v: (v.id, v.subject, v.version))
        sorter.done(*ready)
    return tuple(found)


class ConflictsError(RefusedError):
    """The content of a registry conflicts with that of a file; nothing was changed."""

    code = "import-conflicts"

    def __init__(self, conflicts: tuple[str, ...], place: str) -> None:
        super().__init__(
            f"the file does not fit what is there: {'; '.join(conflicts)}",
            place=place,
            hint="ids are kept, so what has them there must be the same: import into an empty "
            "registry, or export with a PREFIX that leaves these out.",
        )
        self.conflicts = conflicts

    def __str__(self) -> str:
        listed = "".join(f"\n    - {one}" for one in self.conflicts)
        return f"{self.place}: the file does not fit what is there{listed}\n  hint: {self.hint}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of an import.

    Args:
        register: versions to register, in this order.
        delete: versions to delete after that, in this order.
        unchanged: the number of versions that exist already.
        configs: settings to change, per scope; None removes one.
        modes: modes to set, after all else.
    """

    register: tuple[StoredVersion, ...]
    delete: tuple[SchemaUse, ...]
    unchanged: int
    configs: Mapping[Scope, JsonObject]
    modes: Mapping[Scope, Mode]

    @property
    def subjects(self) -> tuple[str, ...]:
        """The subjects with changed versions."""
        uses = {one.subject for one in self.register} | {use.subject for use in self.delete}
        return tuple(sorted(uses))


def plan(admin: Administration, dump: Dump, place: str, progress: Progress, *, modes: bool) -> Plan:
    """Compare a file with a registry.

    Raises:
        ConflictsError: an id or a version has another content there, or a reference is missing.
    """
    register: list[StoredVersion] = []
    delete: list[SchemaUse] = []
    conflicts: list[str] = []
    ordered = in_order(dump.versions)
    known = {SchemaUse(admin.full(one.subject), one.version) for one in ordered}
    for done, one in enumerate(ordered):
        progress("comparing versions", done, len(ordered))
        there = admin.version(one.subject, one.version, deleted=True)
        found = tuple(_conflicts(admin, one, there, known))
        conflicts += found
        if found:
            continue
        if there is None or (there.deleted and not one.deleted):
            register.append(one)
        if one.deleted and (there is None or not there.deleted):
            delete.append(one.use)
    if conflicts:
        raise ConflictsError(tuple(conflicts), place)
    touched = {one.use for one in register} | set(delete)
    return Plan(
        tuple(register),
        tuple(reversed(delete)),  # a version that refers to another is deleted before it
        len(ordered) - len(touched),
        _new_configs(admin, dump.configs),
        {s: m for s, m in dump.modes.items() if admin.own_mode(s) is not m} if modes else {},
    )


def _conflicts(
    admin: Administration, one: StoredVersion, there: StoredVersion | None, known: set[SchemaUse]
) -> Iterator[str]:
    if there is not None and there.id != one.id:
        yield f"{one.use} has id {there.id} there, {one.id} in the file"
    elif there is not None:
        parts = ", ".join(one.differences(there))
        if parts:
            yield f"{one.use} (id {one.id}) is another one there: {parts}"
    else:
        same_id = admin.by_id(one.id, context_of(one.subject))
        parts = ", ".join(one.differences(same_id)) if same_id is not None else ""
        if same_id is not None and parts:
            of = f" (of {same_id.use})" if same_id.version else ""
            yield f"id {one.id} of {one.use} is another schema there{of}: {parts}"
        for use, reference in zip(one.referred, one.references, strict=True):
            named = admin.relative_name(one.subject, text_of(reference["subject"]))
            in_file = SchemaUse(admin.full(named), use.version) in known
            if not in_file and admin.version(named, use.version, deleted=True) is None:
                yield f"{one.use} refers to {use}, which is neither in the file nor there"


def _new_configs(
    admin: Administration, configs: Mapping[Scope, JsonObject]
) -> dict[Scope, JsonObject]:
    found: dict[Scope, JsonObject] = {}
    for scope, config in configs.items():
        theirs = admin.config(scope) or {}
        if theirs != config:
            found[scope] = {**dict.fromkeys(theirs.keys() - config.keys()), **config}
    return found


def bring_in(admin: Administration, what: Plan, progress: Progress, *, whole: bool) -> None:
    """Execute an import.

    Args:
        admin: the registry.
        what: the plan.
        progress: called before each step.
        whole: whether to set mode IMPORT for the whole registry, instead of the subjects that
            change.

    Raises:
        RefusedError: the registry gave another id, or a mode could not be restored.
    """
    with import_mode(admin, _scopes(admin, what.subjects, whole=whole)):
        for done, one in enumerate(what.register):
            progress("registering versions", done, len(what.register))
            _put(admin, one)
        for done, use in enumerate(what.delete):
            progress("deleting versions", done, len(what.delete))
            admin.delete_version(use.subject, use.version)
        for scope, config in what.configs.items():
            admin.set_config(scope, config)
    for scope, mode in what.modes.items():
        admin.set_mode(scope, mode)


def _put(admin: Administration, one: StoredVersion) -> None:
    try:
        found = admin.put(one)
    except MedusaError as error:
        error.place = f"{error.place}, {one} (id {one.id})"
        raise
    if found != one.id:
        raise RefusedError(
            f"the registry gave id {found} instead of {one.id}",
            place=str(one),
            hint="it does not import; delete this version there.",
        )


def _scopes(admin: Administration, subjects: tuple[str, ...], *, whole: bool) -> tuple[Scope, ...]:
    """The scopes for which to set mode IMPORT, so that it applies to these subjects."""
    if not whole:
        return subjects
    contexts = sorted({context_of(one) for one in subjects})
    # The global mode does not apply to contexts, nor to subjects with a mode of their own.
    own = [one for one in subjects if admin.own_mode(one) is not None]
    return (*(context or None for context in contexts), *own)


def still_importing(admin: Administration, subjects: Iterable[str]) -> tuple[str, ...]:
    """The subjects whose own mode is IMPORT, perhaps left over from an import that was killed."""
    return tuple(sorted(one for one in set(subjects) if admin.own_mode(one) is Mode.IMPORT))


@contextmanager
def import_mode(admin: Administration, scopes: Iterable[Scope]) -> Iterator[None]:
    """Set mode IMPORT for scopes in a block, and restore their modes, also after errors.

    Raises:
        RefusedError: a mode could not be restored; contains the scopes.
    """
    before: dict[Scope, Mode | None] = {}
    try:
        for scope in scopes:
            before[scope] = admin.own_mode(scope)
            if before[scope] is not Mode.IMPORT:
                admin.set_mode(scope, Mode.IMPORT)
        yield
    finally:
        _restore(admin, before)


def _restore(admin: Administration, before: Mapping[Scope, Mode | None]) -> None:
    left: list[str] = []
    cause: MedusaError | None = None
    for scope, mode in before.items():
        try:
            if mode is None and scope is not None:
                admin.forget_mode(scope)
            elif mode is not Mode.IMPORT:
                admin.set_mode(scope, mode or Mode.READWRITE)
        except MedusaError as error:
            was = f"it was {mode.value}" if mode else "it had none of its own"
            left.append(f"{scope or 'the whole registry'} ({was})")
            cause = error
    if left:
        raise RefusedError(
            f"the mode could not be put back and may still be IMPORT: {', '.join(left)}",
            hint="`medusa schema mode SUBJECT --reset`, or with a MODE, puts it back.",
        ) from cause
