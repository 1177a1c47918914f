"""Asking brokers until they have retried, and what they say of access."""

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
    """Time passes by sleeping alone."""

    def __init__(self) -> None:
        self.slept_s = 0.0

    def monotonic_s(self) -> float:
        """As long as was slept."""
        return self.slept_s

    def sleep(self, seconds: float) -> None:
        """At once."""
        self.slept_s += seconds


def asked(*answers: MedusaError | str) -> tuple[MedusaError | str, float]:
    """The answer that counts within a second, and how long it took; the last is given for ever."""

    def given() -> Iterator[MedusaError | str]:
        yield from answers
        while True:
            yield answers[-1]

    clock, told = SleptClock(), given()
    return retried(lambda: next(told), clock, 1.0), clock.slept_s


def test_an_answer_is_taken_at_once() -> None:
    """Also one that refuses."""
    assert asked("yes") == ("yes", 0.0)
    assert asked(REFUSED) == (REFUSED, 0.0)


def test_brokers_that_ask_for_it_are_asked_again() -> None:
    """They do while they start."""
    answer, slept_s = asked(AGAIN, AGAIN, "yes")
    assert answer == "yes"
    assert slept_s > 0


def test_it_ends_when_the_time_is_over() -> None:
    """With what they said last."""
    answer, slept_s = asked(AGAIN)
    assert answer is AGAIN
    assert 1.0 <= slept_s < 1.5


Answer = list[AclBinding] | KafkaException
EVERY = frozenset({AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS})
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass
class Client:
    """An administrative client of a cluster with one broker.

    Args:
        answer: what it says of access control lists.
        allowed: what we may do with the cluster; None: it does not answer.
        settings: of the broker.
        asked: the questions about access control lists.
    """

    answer: Answer
    allowed: frozenset[AclOperation] | None = EVERY
    settings: Mapping[str, str | None] = field(
        default_factory=lambda: {"authorizer.class.name": AUTHORIZER}
    )
    asked: list[AclBindingFilter] = field(default_factory=list)

    def describe_acls(self, asked: AclBindingFilter, **_: object) -> "Future[object]":
        """At once."""
        self.asked.append(asked)
        return done(self.answer)

    def describe_cluster(self, **_: object) -> "Future[object]":
        """With what we may do."""
        if self.allowed is None:
            return done(KafkaException(KafkaError(KafkaError._TIMED_OUT, "words")))
        nodes = [SimpleNamespace(id=7)]
        return done(SimpleNamespace(authorized_operations=[*self.allowed], nodes=nodes))

    def describe_configs(
        self, asked: list[ConfigResource], **_: object
    ) -> dict[str, "Future[object]"]:
        """Those of the broker."""
        assert [(one.restype, one.name) for one in asked] == [(ResourceType.BROKER, "7")]
        entries = {name: SimpleNamespace(value=value) for name, value in self.settings.items()}
        return {"7": done(entries)}


def done(answer: object) -> "Future[object]":
    """An answer that is there."""
    future: Future[object] = Future()
    if isinstance(answer, KafkaException):
        future.set_exception(answer)
    else:
        future.set_result(answer)
    return future


def told(client: Client) -> tuple[TopicRule, ...] | MedusaError:
    """What rights at such brokers are."""
    found = KafkaRights(KafkaServers("127.0.0.1:1"), 1.0)
    found._client = client  # type: ignore[assignment]
    return found.topic_rules()


def binding(pattern: ResourcePatternType, name: str, given: AclPermissionType) -> AclBinding:
    """An entry as the driver has it."""
    return AclBinding(ResourceType.TOPIC, name, pattern, "User:eve", "*", AclOperation.WRITE, given)


def test_rules_about_topics_are_plain_facts() -> None:
    """All of them are asked for, of whatever kind; sorted."""
    client = Client(
        [
            binding(ResourcePatternType.PREFIXED, "net.", AclPermissionType.ALLOW),
            binding(ResourcePatternType.LITERAL, "*", AclPermissionType.DENY),
        ]
    )
    assert told(client) == (
        TopicRule("*", False, "User:eve", "*", "WRITE", False),
        TopicRule("net.", True, "User:eve", "*", "WRITE", True),
    )
    (question,) = client.asked
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
    """The driver gives one, whatever the brokers say: none are kept, or we are not told."""
    assert type(told(client)) is kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.SECURITY_DISABLED, NoAccessListsError),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, NotAllowedError),
        (KafkaError._TIMED_OUT, UnavailableError),
    ],
)
def test_an_error_that_the_driver_hands_on(code: int, kind: type[MedusaError]) -> None:
    """It says the same."""
    found = told(Client(KafkaException(KafkaError(code, "words"))))
    assert type(found) is kind
    assert isinstance(found, MedusaError)
    assert "access control lists" in found.place
