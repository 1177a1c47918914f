"""The schema registry, as a deploy uses it; `schemas.client.RegistryClient` is the real one."""

from typing import Protocol

from pipeline.ids import SchemaId
from schemas.records import RegisteredSchema


class Registry(Protocol):
    """The schema registry. Methods raise `UnavailableError` when it does not answer."""

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The newest schema of a subject; None if the subject is not known."""

    def readable_versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """The versions of a subject, oldest first, without those that are not Avro."""

    def lookup(self, subject: str, schema_text: str) -> SchemaId | None:
        """The id of a schema, if some version of the subject is this schema."""

    def check(self, subject: str, schema_text: str) -> tuple[str, ...]:
        """Why a schema could not be registered under a subject; empty: it could."""

    def register(self, subject: str, schema_text: str) -> SchemaId:
        """Register a schema, or find it registered.

        Raises:
            SchemaError: it does not parse, or does not fit the subject.
        """
