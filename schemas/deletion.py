"""Deletion of a subject or a version: affected versions, references to them, requests."""

from dataclasses import dataclass

from pipeline.errors import RefusedError, SchemaError
from schemas.administration import Administration
from schemas.entries import SchemaUse


@dataclass(frozen=True, slots=True)
class Doomed:
    """One version to be deleted.

    Args:
        use: its subject and version.
        deleted: whether it is soft-deleted already, and would now be deleted permanently.
        referrers: the versions that refer to it.
    """

    use: SchemaUse
    deleted: bool
    referrers: tuple[SchemaUse, ...]


def doomed(
    admin: Administration, subject: str, version: int | None, *, permanent: bool
) -> tuple[Doomed, ...]:
    """The versions that a deletion would delete; empty if they are deleted already.

    Raises:
        SchemaError: the subject or version does not exist, not even as a deleted one.
    """
    live = admin.version_numbers(subject)
    every = admin.version_numbers(subject, deleted=True)
    if not every or (version is not None and version not in every):
        what = f"version {version} of it" if every else "the subject"
        hint = f"it has {', '.join(map(str, every))}." if every else ""
        raise SchemaError(
            f"the registry does not have {what}",
            place=f"subject {subject}",
            hint=hint or "`medusa schema list` shows what it has.",
        )
    numbers = every if version is None else (version,)
    return tuple(
        Doomed(
            SchemaUse(subject, number),
            number not in live,
            _referrers(admin, SchemaUse(subject, number), permanent=permanent),
        )
        for number in numbers
        if permanent or number in live
    )


def require_unreferred(what: tuple[Doomed, ...]) -> None:
    """Check that only versions that are deleted, too, refer to these versions.

    Raises:
        RefusedError: another version refers to one of them; contains both.
    """
    deleted = {one.use for one in what}
    left = {str(by): one.use for one in what for by in one.referrers if by not in deleted}
    if left:
        words = "; ".join(f"{by} refers to {use}" for by, use in left.items())
        raise RefusedError(
            f"it cannot be deleted: {words}",
            place=f"subject {what[0].use.subject}",
            hint="delete first what refers to it.",
        )


def delete(
    admin: Administration, what: tuple[Doomed, ...], version: int | None, *, permanent: bool
) -> None:
    """Delete the versions that `doomed` returned for this subject or version; idempotent."""
    if not what:
        return
    subject = what[0].use.subject
    # A registry deletes permanently only what is soft-deleted already.
    steps = [False] * any(not one.deleted for one in what) + [True] * permanent
    for is_permanent in steps:
        if version is None:
            admin.delete_subject(subject, permanent=is_permanent)
        else:
            admin.delete_version(subject, version, permanent=is_permanent)


def _referrers(admin: Administration, use: SchemaUse, *, permanent: bool) -> tuple[SchemaUse, ...]:
    """The versions that refer to one; a registry returns their ids without contexts."""
    ids = admin.referrers(use.subject, use.version, deleted=permanent)
    contexts = (admin.relative_name(use.subject, ""), *admin.contexts()) if ids else ()
    return tuple(
        referrer
        for schema_id in ids
        for context in dict.fromkeys(contexts)
        for referrer in admin.uses(schema_id, context, deleted=permanent)
        if _refers(admin, referrer, use)
    )


def _refers(admin: Administration, one: SchemaUse, to: SchemaUse) -> bool:
    """Whether a version refers to another one: in its context the id may have another schema."""
    found = admin.referred(one)
    return found is not None and SchemaUse(admin.full(to.subject), to.version) in found.referred
