from collections.abc import Callable
from contextlib import closing
from typing import Any

import httpx
import pytest

from pipeline.errors import RefusedError, SchemaError, UnavailableError
from pipeline.ids import SchemaId
from schemas.administration import Administration, quoted
from schemas.client import RegistryClient
from schemas.compatibility import Level
from schemas.entries import SchemaUse
from schemas.registry.config import Mode
from schemas.transport import NotARegistryError
from tests.unit.schemas.fake_registry import FakeRegistry, error
from tests.unit.schemas.rest.running import Service

A = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
B = A.replace("int", "long")


def admin_of(fake: FakeRegistry) -> Administration:
    """Its administration client."""
    transport = httpx.MockTransport(fake.handle)
    return RegistryClient("http://localhost", timeout_s=1, transport=transport).admin


def test_lists_are_read_to_their_end() -> None:
    """By pages, also where a registry returns fewer than requested, or has no pages."""
    fake = FakeRegistry(page=100)
    for number in range(250):
        fake.add(f"s-{number:03}", A)
    assert len(admin_of(fake).subjects()) == 250
    assert admin_of(fake).subjects("s-24") == tuple(f"s-24{n}" for n in range(10))
    everything = [f"s{n:04}" for n in range(1000)]
    fake.broken = lambda _: (200, everything)
    assert admin_of(fake).subjects() == tuple(everything)
    fake.broken = lambda _: (200, [f"s{n:04}" for n in range(1001)])
    fake.requests.clear()
    assert len(admin_of(fake).subjects()) == 1001
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("path", "subject", "in_context", "there"),
    [
        ("", "s", "", True),
        ("", "s", ":.c:", False),
        ("", ":.c:s", ":.c:", True),
        ("/contexts/.c", "s", ":.c:", True),
        ("/contexts/.c/", "s", "", False),
        ("/base/contexts/%2Ec", "s", ":.c:", True),
        ("/contexts/c", "s", ":.c:", True),
        ("/contexts/:.c:", "s", ":.c:", True),
        ("/contexts/:.c:", "s", ":.d:", False),
        ("/contexts/.", "s", "", True),
        ("/contexts", "s", "", True),
    ],
)
def test_a_version_of_another_context_is_not_the_requested_one(
    path: str, subject: str, in_context: str, *, there: bool
) -> None:
    """The address may name the context of all subjects that name none."""
    value = {"subject": f"{in_context}s", "version": 1, "id": 1, "schema": A}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=value))
    admin = RegistryClient("http://localhost" + path, transport=transport).admin
    assert (admin.version(subject, 1) is not None) == there


def test_a_version_is_read_with_all_its_parts() -> None:
    """Also a deleted one, if requested."""
    fake = FakeRegistry()
    fake.add("s", A, metadata={"properties": {"owner": "me"}})
    admin = admin_of(fake)
    found = admin.version("s", "latest")
    assert found is not None
    assert (found.version, found.id, found.metadata) == (1, 1, {"properties": {"owner": "me"}})
    assert found.guid
    admin.delete_version("s", 1)
    assert admin.version("s", 1) is None
    gone = admin.version("s", 1, deleted=True)
    assert gone is not None
    assert gone.deleted
    assert admin.version_numbers("s") == ()
    assert admin.version_numbers("s", deleted=True) == (1,)
    admin.delete_version("s", 1)
    admin.delete_subject("s", permanent=True)
    admin.delete_subject("s", permanent=True)
    assert fake.versions == {}


def test_a_subject_of_another_context_is_another_subject() -> None:
    """A registry may return one that was not requested."""
    fake = FakeRegistry()
    answer = {"subject": ":.c:s", "version": 1, "id": 1, "schema": A}
    fake.broken = lambda _: (200, answer)
    assert admin_of(fake).version("s", 1) is None
    assert admin_of(fake).version(":.c:s", 1) is not None


@pytest.mark.parametrize("address", ["", "/contexts/.", "/contexts/./", "/contexts/c"])
def test_a_context_in_an_address_may_have_another_notation(address: str) -> None:
    """The default one, too, whose name is a single dot."""
    subject = ":.c:s" if address.endswith("c") else "s"
    with Service() as service:
        service.register(subject, A)
        with closing(RegistryClient(f"{service.server.url}{address}")) as client:
            assert client.latest("s") is not None
            assert client.admin.subjects("s") == (subject,)


@pytest.mark.parametrize("prefix", ["", "car", ":.c:car"])
def test_subjects_of_the_context_of_the_address(prefix: str) -> None:
    """Registries return them with it, also where a prefix without it was requested."""
    with Service() as service:
        for subject in ("cars", ":.c:cars", ":.c:buses"):
            assert service.register(subject, A).status_code == 200
        with closing(RegistryClient(f"{service.server.url}/contexts/.c")) as client:
            found = client.admin.subjects(prefix)
    assert found == ((":.c:cars",) if prefix else (":.c:buses", ":.c:cars"))


def test_levels_and_modes_are_those_in_force() -> None:
    """A subject's own first, then the global ones; a removed one is not in force."""
    fake = FakeRegistry()
    admin = admin_of(fake)
    assert admin.level_in_force("s") is Level.BACKWARD
    admin.set_level(None, Level.FULL)
    assert admin.level_in_force("s") is Level.FULL
    assert admin.own_level("s") is None
    admin.set_level("s", Level.NONE)
    assert admin.own_level("s") is admin.level_in_force("s") is Level.NONE
    admin.forget_config("s")
    admin.forget_config("s")
    assert admin.own_level("s") is None
    admin.set_mode("s", Mode.READONLY)
    assert admin.own_mode("s") is admin.mode_in_force("s") is Mode.READONLY
    admin.forget_mode("s")
    assert admin.own_mode("s") is None
    assert admin.mode_in_force("s") is Mode.READWRITE


def test_setting_import_never_removes_deleted_versions() -> None:
    """Registries remove them where the mode is forced."""
    fake = FakeRegistry()
    fake.add("s", A)
    admin = admin_of(fake)
    admin.delete_subject("s")
    admin.set_mode("s", Mode.IMPORT)
    assert admin.version_numbers("s", deleted=True) == (1,)


def test_referrers_of_a_version_are_found_by_id_and_use() -> None:
    """Each use of the referring schema."""
    fake = FakeRegistry()
    fake.add("s", A)
    reference = {"name": "R", "subject": "s", "version": 1}
    fake.add("t", '{"type":"array","items":"R"}', references=[reference])
    fake.add("u", '{"type":"array","items":"R"}', references=[reference])
    admin = admin_of(fake)
    assert admin.referrers("s", 1) == (2,)
    assert admin.uses(2) == (SchemaUse("t", 1), SchemaUse("u", 1))
    with pytest.raises(RefusedError, match="references exist") as caught:
        admin.delete_version("s", 1)
    assert "refers to it" in caught.value.hint


def test_an_operation_refused_by_the_state_of_a_registry() -> None:
    """The error contains the remedy; there is no retry."""
    fake = FakeRegistry()
    fake.add("s", A)
    fake.add("s", B)
    admin = admin_of(fake)
    calls: tuple[Callable[[], None], ...] = (
        lambda: admin.delete_version("s", 1, permanent=True),
        lambda: admin.delete_subject("s", permanent=True),
    )
    for call in calls:
        before = len(fake.requests)
        with pytest.raises(RefusedError, match="was not deleted") as caught:
            call()
        assert "then permanently" in caught.value.hint
        assert len(fake.requests) == before + 1
    found = admin.version("s", 1)
    assert found is not None
    with pytest.raises(RefusedError, match="not in import mode") as caught:
        admin.put(found)
    assert "medusa schema mode" in caught.value.hint


@pytest.mark.parametrize(
    "answer",
    [(200, {"compatibilityLevel": "ODD", "mode": "ODD"}), error(404, "HTTP 404 Not Found")],
)
def test_unknown_responses_are_no_levels(answer: tuple[int, object]) -> None:
    """Of a newer registry, or of another server."""
    fake = FakeRegistry(broken=lambda _: answer)
    with pytest.raises(UnavailableError):
        admin_of(fake).own_level("s")
    with pytest.raises(UnavailableError):
        admin_of(fake).own_mode("s")


@pytest.mark.parametrize("subject", ["", "\ud800", "x" * 100_000])
def test_an_invalid_subject_name_is_not_requested(subject: str) -> None:
    """An empty one would be another path."""
    fake = FakeRegistry()
    with pytest.raises(SchemaError):
        admin_of(fake).version(subject, 1)
    with pytest.raises(SchemaError):
        admin_of(fake).subjects(subject or "\udcff")
    assert not fake.requests


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"references": 5}, "references that should be a list"),
        ({"references": {"name": "x"}}, "references that should be a list"),
        ({"references": [None]}, "without name, subject and version"),
        ({"references": [{"name": "R", "subject": "r", "version": True}]}, "without name"),
        ({"metadata": [1]}, "metadata that should be an object"),
        ({"ruleSet": "x"}, "ruleSet that should be an object"),
        ({"schemaType": ["AVRO"]}, "schemaType that should be a text"),
        ({"subject": {"a": 1}}, "subject that should be a text"),
        ({"deleted": "no"}, "deleted that should be true or false"),
    ],
)
def test_a_version_with_an_invalid_part_is_a_schema_error(
    more: dict[str, Any], message: str
) -> None:
    """In every call that reads it."""
    fake = FakeRegistry(
        broken=lambda _: (200, {"schema": A, "subject": "s", "version": 1, "id": 1, **more})
    )
    client = RegistryClient("http://localhost", transport=httpx.MockTransport(fake.handle))
    calls: tuple[Callable[[], object], ...] = (
        lambda: client.schema_of(SchemaId(1)),
        lambda: client.latest("s"),
        lambda: client.admin.version("s", 1),
        lambda: client.admin.by_id(1),
    )
    for call in calls:
        with pytest.raises(SchemaError, match=message):
            call()


@pytest.mark.parametrize(
    "one", [{"subject": "s", "version": True}, {"subject": "s", "version": "x"}, {"version": None}]
)
def test_invalid_uses_and_numbers_are_no_registry_response(one: dict[str, Any]) -> None:
    """True is no number."""
    fake = FakeRegistry(broken=lambda _: (200, [one]))
    with pytest.raises(NotARegistryError):
        admin_of(fake).uses(1)
    fake.broken = lambda _: (200, [one["version"]])
    with pytest.raises(NotARegistryError):
        admin_of(fake).version_numbers("s")


@pytest.mark.parametrize("subject", [".", "..", "..."])
def test_a_subject_of_dots_is_no_relative_path(subject: str) -> None:
    """The HTTP client does not resolve it as a folder."""
    assert quoted(subject) == "%2E" * len(subject)
    assert quoted("a.b/c") == "a.b%2Fc"
    request = httpx.Client(base_url="http://r/base").build_request(
        "GET", f"/config/{quoted(subject)}"
    )
    assert request.url.raw_path == b"/base/config/" + b"%2E" * len(subject)
