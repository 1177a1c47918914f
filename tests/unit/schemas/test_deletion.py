from collections.abc import Iterator
from contextlib import closing

import pytest

from pipeline.errors import RefusedError
from schemas.administration import Administration
from schemas.client import RegistryClient
from schemas.deletion import doomed, require_unreferred
from schemas.entries import SchemaUse
from tests.unit.schemas.rest.running import Service

A = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
USER = '{"type":"record","name":"U","fields":[{"name":"r","type":"R"}]}'


@pytest.fixture
def service() -> Iterator[Service]:
    """A registry in which a schema of another context refers to one of the default context."""
    with Service() as running:
        for subject, schema in (("base", A), ("other", '"int"'), (":.c:other", '"int"')):
            assert running.register(subject, schema).status_code == 200
        reference = {"name": "R", "subject": ":.:base", "version": 1}
        assert running.register(":.c:user", USER, references=[reference]).json()["id"] == 2
        yield running


def _referrers(admin: Administration, subject: str) -> tuple[SchemaUse, ...]:
    return tuple(
        by for one in doomed(admin, subject, None, permanent=False) for by in one.referrers
    )


def test_a_referrer_from_another_context_is_named(service: Service) -> None:
    """And not the schema with that id in the context of the deleted one."""
    with closing(RegistryClient(service.server.url)) as client:
        assert client.admin.contexts() == ("", ":.c:")
        assert _referrers(client.admin, "base") == (SchemaUse(":.c:user", 1),)
        with pytest.raises(RefusedError, match=r":\.c:user version 1 refers to base version 1"):
            require_unreferred(doomed(client.admin, "base", None, permanent=False))
        assert _referrers(client.admin, "other") == ()


def test_referrers_are_found_at_the_address_of_a_context(service: Service) -> None:
    """In that one, or in the default one."""
    within = {"name": "R", "subject": "r", "version": 1}
    service.register(":.c:r", A)
    service.register(":.c:near", USER.replace("U", "V"), references=[within])
    with closing(RegistryClient(f"{service.server.url}/contexts/.c")) as client:
        assert _referrers(client.admin, "r") == (SchemaUse(":.c:near", 1),)
        assert _referrers(client.admin, ":.:base") == (SchemaUse(":.c:user", 1),)


def test_a_registry_without_contexts_has_one(service: Service) -> None:
    """It has no route for them."""
    with closing(RegistryClient(f"{service.server.url}/nowhere")) as client:
        assert client.admin.contexts() == ("",)
