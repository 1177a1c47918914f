"""Interface of the schema registry for deploys; `schemas.client.RegistryClient` implements it."""

from typing import Protocol

from pipeline.ids import SchemaId
from schemas.records import RegisteredSchema


class Registry(Protocol):
    """Schema registry. Methods raise `UnavailableError` when it does not answer."""

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The newest schema of a subject; None if the subject does not exist."""

    def readable_versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """The Avro versions of a subject, oldest first."""

    def lookup(self, subject: str, schema_text: str) -> SchemaId | None:
        """The id of a schema that is a version of the subject; None: it is not."""

    def check(self, subject: str, schema_text: str) -> tuple[str, ...]:
        """Reasons why a schema cannot be registered under a subject; empty if it can."""

    def register(self, subject: str, schema_text: str) -> SchemaId:
        """Register a schema, unless it is registered already, and return its id.

        Raises:
            SchemaError: it does not parse, or is incompatible with the subject.
        """
