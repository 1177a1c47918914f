"""Access rights at brokers: retries and translation of the responses."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unmarked
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from brokers.kafka.errors import NoAccessListsError
from brokers.kafka.rights import KafkaRights, retried
from brokers.kafka.servers import KafkaServers
from brokers.records import TopicRule
from pipeline.errors import (
    MedusaError,
    NotAllowedError,
    RefusedError,
    RetryError,
    UnavailableError,
)
from pipeline.system_clock import SystemClock

AGAIN, REFUSED = RetryError("try again"), RefusedError("no")


class SleptClock(SystemClock):
    """Time passes only by sleeping."""

    def __init__(self) -> None:
        self.slept_s = 0.0

    def monotonic_s(self) -> float:
        """The time slept."""
        return self.slept_s

    def sleep(self, seconds: float) -> None:
        """Return at once."""
        self.slept_s += seconds


def retry(*answers: MedusaError | str) -> tuple[MedusaError | str, float]:
    """The response that counts within a second, and its time; the last one is repeated."""

    def given() -> Iterator[MedusaError | str]:
        yield from answers
        while True:
            yield answers[-1]

    clock, responses = SleptClock(), given()
    return retried(lambda: next(responses), clock, 1.0), clock.slept_s


def test_a_response_is_used_at_once() -> None:
    """Also a refusal."""
    assert retry("yes") == ("yes", 0.0)
    assert retry(REFUSED) == (REFUSED, 0.0)


def test_retriable_responses_are_retried() -> None:
    """Brokers return them while they start."""
    answer, slept_s = retry(AGAIN, AGAIN, "yes")
    assert answer == "yes"
    assert slept_s > 0


def test_retries_end_at_the_deadline() -> None:
    """With the last response."""
    answer, slept_s = retry(AGAIN)
    assert answer is AGAIN
    assert 1.0 <= slept_s < 1.5


Answer = list[AclBinding] | KafkaException
EVERY = frozenset({AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS})
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass
class Client:
    """An administrative client of a cluster with one broker.

    Args:
        answer: the access control lists, or the error.
        allowed: our operations on the cluster; None: it is unreachable.
        settings: of the broker.
        requests: the requests of access control lists.
    """

    answer: Answer
    allowed: frozenset[AclOperation] | None = EVERY
    settings: Mapping[str, str | None] = field(
        default_factory=lambda: {"authorizer.class.name": AUTHORIZER}
    )
    requests: list[AclBindingFilter] = field(default_factory=list)

    def describe_acls(self, request: AclBindingFilter, **_: object) -> "Future[object]":
        """At once."""
        self.requests.append(request)
        return done(self.answer)

    def describe_cluster(self, **_: object) -> "Future[object]":
        """With the allowed operations."""
        if self.allowed is None:
            return done(KafkaException(KafkaError(KafkaError._TIMED_OUT, "words")))
        nodes = [SimpleNamespace(id=7)]
        return done(SimpleNamespace(authorized_operations=[*self.allowed], nodes=nodes))

    def describe_configs(
        self, retried: list[ConfigResource], **_: object
    ) -> dict[str, "Future[object]"]:
        """Those of the broker."""
        assert [(one.restype, one.name) for one in retried] == [(ResourceType.BROKER, "7")]
        entries = {name: SimpleNamespace(value=value) for name, value in self.settings.items()}
        return {"7": done(entries)}


def done(answer: object) -> "Future[object]":
    """A completed future."""
    future: Future[object] = Future()
    if isinstance(answer, KafkaException):
        future.set_exception(answer)
    else:
        future.set_result(answer)
    return future


def rights(client: Client) -> tuple[TopicRule, ...] | MedusaError:
    """The rights at such brokers."""
    found = KafkaRights(KafkaServers("127.0.0.1:1"), 1.0)
    found._client = client  # type: ignore[assignment]
    return found.topic_rules()


def binding(pattern: ResourcePatternType, name: str, given: AclPermissionType) -> AclBinding:
    """An entry as the driver returns it."""
    return AclBinding(ResourceType.TOPIC, name, pattern, "User:eve", "*", AclOperation.WRITE, given)


def test_rules_about_topics_are_plain_values() -> None:
    """All kinds are requested; sorted."""
    client = Client(
        [
            binding(ResourcePatternType.PREFIXED, "net.", AclPermissionType.ALLOW),
            binding(ResourcePatternType.LITERAL, "*", AclPermissionType.DENY),
        ]
    )
    assert rights(client) == (
        TopicRule("*", False, "User:eve", "*", "WRITE", False),
        TopicRule("net.", True, "User:eve", "*", "WRITE", True),
    )
    (question,) = client.requests
    assert question.restype is ResourceType.TOPIC
    assert question.resource_pattern_type is ResourcePatternType.ANY
    assert question.operation is AclOperation.ANY
    assert question.permission_type is AclPermissionType.ANY
    named: list[str | None] = [question.name, question.principal, question.host]
    assert named == [None, None, None]


@pytest.mark.parametrize(
    ("client", "kind"),
    [
        (Client([]), tuple),
        (Client([], allowed=frozenset({AclOperation.DESCRIBE})), tuple),
        (Client([], settings={}), tuple),
        (Client([], settings={"authorizer.class.name": ""}), NoAccessListsError),
        (Client([], settings={"authorizer.class.name": None}), NoAccessListsError),
        (Client([], allowed=frozenset()), NotAllowedError),
        (Client([], allowed=None), UnavailableError),
    ],
)
def test_an_empty_list_has_a_reason(client: Client, kind: type) -> None:
    """The driver returns one in any case: there are none, or they may not be listed."""
    assert type(rights(client)) is kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.SECURITY_DISABLED, NoAccessListsError),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, NotAllowedError),
        (KafkaError._TIMED_OUT, UnavailableError),
    ],
)
def test_an_error_of_the_driver_is_translated(code: int, kind: type[MedusaError]) -> None:
    """With the same message."""
    found = rights(Client(KafkaException(KafkaError(code, "words"))))
    assert type(found) is kind
    assert isinstance(found, MedusaError)
    assert "access control lists" in found.place
