"""Errors of registry requests, with Confluent's codes and messages, which clients evaluate. Pure.

A code's first three digits are the HTTP status. Names are printed as `SubjectName` prints them.
"""

from typing import ClassVar

from pipeline.errors import InputError
from schemas.registry.names import SubjectName


class RegistryRefusal(InputError):  # noqa: N818 - its kinds are errors
    """A request that the registry refuses; nothing was changed."""

    number: ClassVar[int] = 422
    code = "registry-refusal"

    @property
    def status(self) -> int:
        """The HTTP status."""
        return int(str(self.number)[:3])


class BadBodyError(RegistryRefusal):
    """The body is not JSON, or a value has the wrong type."""

    number = 400


class NoSubjectError(RegistryRefusal):
    """The subject does not exist, or is deleted."""

    number = 40401

    def __init__(self, subject: SubjectName) -> None:
        super().__init__(f"Subject '{subject}' not found.")


class NoVersionError(RegistryRefusal):
    """The version does not exist, or is deleted."""

    number = 40402

    def __init__(self, version: int) -> None:
        super().__init__(f"Version {version} not found.")


class NoSchemaError(RegistryRefusal):
    """The schema does not exist."""

    number = 40403

    def __init__(self, which: int | str | None = None) -> None:
        super().__init__("Schema not found" if which is None else f"Schema {which} not found")


class SubjectDeletedError(RegistryRefusal):
    """The subject is soft-deleted already."""

    number = 40404

    def __init__(self, subject: SubjectName) -> None:
        super().__init__(
            f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
        )


class SubjectNotDeletedError(RegistryRefusal):
    """A permanent deletion requires a soft deletion first."""

    number = 40405

    def __init__(self, subject: SubjectName) -> None:
        super().__init__(
            f"Subject '{subject}' was not deleted first before being permanently deleted"
        )


class VersionDeletedError(RegistryRefusal):
    """The version is soft-deleted already."""

    number = 40406

    def __init__(self, subject: SubjectName, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was soft deleted."
            "Set permanent=true to delete permanently"
        )


class VersionNotDeletedError(RegistryRefusal):
    """A permanent deletion requires a soft deletion first."""

    number = 40407

    def __init__(self, subject: SubjectName, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was not deleted first before being "
            "permanently deleted"
        )


class NoConfigError(RegistryRefusal):
    """The subject has no configuration of its own."""

    number = 40408

    def __init__(self, subject: SubjectName) -> None:
        super().__init__(
            f"Subject '{subject}' does not have subject-level compatibility configured"
        )


class NoModeError(RegistryRefusal):
    """The subject has no mode of its own."""

    number = 40409

    def __init__(self, subject: SubjectName) -> None:
        super().__init__(f"Subject '{subject}' does not have subject-level mode configured")


class NoAssociationError(RegistryRefusal):
    """This registry has no associations."""

    number = 40410

    def __init__(self, resource: str) -> None:
        super().__init__(f"Association for '{resource}' not found.")


class IncompatibleError(RegistryRefusal):
    """A new version is incompatible with earlier ones; `messages` contains the reasons."""

    number = 40901

    def __init__(self, subject: SubjectName, messages: tuple[str, ...]) -> None:
        super().__init__(
            "Schema being registered is incompatible with an earlier schema for subject "
            f'"{subject}", details: [{", ".join(messages)}]'
        )
        self.messages = messages


class BadSchemaError(RegistryRefusal):
    """The sent text is no schema, or refers to one that does not exist."""

    number = 42201


class BadVersionError(RegistryRefusal):
    """The text is not a valid version."""

    number = 42202

    def __init__(self, version: int | str) -> None:
        super().__init__(
            f"The specified version '{version}' is not a valid version id. "
            'Allowed values are between [1, 2^31-1] and the string "latest"'
        )


class BadLevelError(RegistryRefusal):
    """The compatibility level does not exist."""

    number = 42203

    def __init__(self) -> None:
        super().__init__(
            "Invalid compatibility level. Valid values are none, backward, forward, full, "
            "backward_transitive, forward_transitive, and full_transitive"
        )


class BadModeError(RegistryRefusal):
    """The mode does not exist."""

    number = 42204

    def __init__(self) -> None:
        super().__init__("Invalid mode. Valid values are READWRITE, READONLY, and IMPORT.")


class NotPermittedError(RegistryRefusal):
    """The mode, or existing schemas, do not permit the request."""

    number = 42205


class ReferenceExistsError(RegistryRefusal):
    """Another schema refers to a version that the request would delete."""

    number = 42206

    def __init__(self, subject: SubjectName, version: int) -> None:
        super().__init__(
            "One or more references exist to the schema "
            f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}."
        )


class BadSubjectError(RegistryRefusal):
    """The name is not valid for a subject."""

    number = 42208

    def __init__(self, subject: SubjectName) -> None:
        super().__init__(f"The specified subject '{subject}' is not a valid.")


class TooLargeError(RegistryRefusal):
    """The schema exceeds a limit of size, depth or references."""

    number = 42209


class BadRulesError(RegistryRefusal):
    """The rule set is invalid."""

    number = 42210


class ContextNotEmptyError(RegistryRefusal):
    """The context has subjects, so it cannot be deleted."""

    number = 42211

    def __init__(self, context: SubjectName) -> None:
        super().__init__(f"The specified context '{context}' is not empty.")
