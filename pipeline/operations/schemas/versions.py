"""Lookup of versions of a subject, with resolved references."""

from pipeline.errors import InputError, SchemaError
from pipeline.nearest import near
from schemas.administration import Administration, Version
from schemas.entries import StoredVersion


def fetch(admin: Administration, subject: str, version: Version = "latest") -> StoredVersion:
    """One version, with resolved references.

    Raises:
        SchemaError: the registry does not have it; lists those that it has.
    """
    found = admin.version(subject, version, resolved=True)
    if found is not None:
        return found
    numbers = require_versions(admin, subject)
    there = ", ".join(map(str, numbers))
    raise SchemaError(
        f"the registry does not have version {version} of it",
        place=f"subject {subject}",
        hint=f"it has {there}.",
    )


def require_versions(admin: Administration, subject: str) -> tuple[int, ...]:
    """The versions of a subject, ascending; at least one.

    Raises:
        SchemaError: there is no such subject.
    """
    numbers = admin.version_numbers(subject)
    if numbers:
        return numbers
    like = near(subject, admin.subjects())
    hint = f"it has {', '.join(like)}." if like else "`medusa schema list` shows what it has."
    raise SchemaError(
        "the registry does not have the subject", place=f"subject {subject}", hint=hint
    )


def before(admin: Administration, subject: str, version: int) -> int:
    """The version before another one.

    Raises:
        InputError: there is none.
    """
    older = [one for one in require_versions(admin, subject) if one < version]
    if not older:
        raise InputError(
            f"there is no version before {version} to compare with",
            place=f"subject {subject}",
            hint="compare it with a file: `medusa schema diff SUBJECT FILE`.",
        )
    return older[-1]
