"""Principals that may write, by access control lists: as Kafka's own authorizer decides."""

from dataclasses import replace

import pytest

from brokers.records import TopicRule
from pipeline.doctor.writers import Writer, other_writers
from pipeline.ids import TopicName

OUT, MARKERS = TopicName("n.out"), TopicName("n.out.markers")
EVE = TopicRule("n.out", False, "User:eve", "*", "WRITE", True)
EVERYWHERE = replace(EVE, topics="*")
ALIKE = replace(EVE, topics="n.", prefixed=True)


def test_principals_with_a_right_by_name() -> None:
    """With the topics and the rules; without ourselves."""
    rules = (EVE, replace(EVE, principal="User:medusa"))
    assert other_writers((OUT, MARKERS), rules, "User:medusa") == (
        Writer("User:eve", (OUT,), (EVE,)),
    )
    both = other_writers((OUT,), rules, None)
    assert [one.principal for one in both] == ["User:eve", "User:medusa"]


@pytest.mark.parametrize(
    ("rule", "topics"),
    [
        (EVE, (OUT,)),
        (EVERYWHERE, (OUT, MARKERS)),
        (ALIKE, (OUT, MARKERS)),
        (replace(ALIKE, topics="n.out."), (MARKERS,)),
        (replace(ALIKE, topics="m."), ()),
        (replace(ALIKE, prefixed=False), ()),
        (replace(ALIKE, topics="*"), ()),
        (replace(EVERYWHERE, operation="ALL"), (OUT, MARKERS)),
        (replace(EVERYWHERE, operation="READ"), ()),
        (replace(EVERYWHERE, operation="ALTER"), ()),
    ],
)
def test_patterns_and_operations_of_a_rule(rule: TopicRule, topics: tuple[TopicName, ...]) -> None:
    """One topic, a prefix, or all; to write, or all operations."""
    found = other_writers((OUT, MARKERS), (rule,), None)
    assert found == ((Writer("User:eve", topics, (rule,)),) if topics else ())


@pytest.mark.parametrize(
    ("denied", "left"),
    [
        (replace(EVE, allows=False), (MARKERS,)),
        (replace(EVE, allows=False, operation="ALL"), (MARKERS,)),
        (replace(EVE, allows=False, operation="READ"), (OUT, MARKERS)),
        (replace(EVE, allows=False, principal="User:*"), (MARKERS,)),
        (replace(EVE, allows=False, principal="User:bob"), (OUT, MARKERS)),
        (replace(EVE, allows=False, host="10.0.0.1"), (OUT, MARKERS)),
        (replace(ALIKE, allows=False), ()),
        (replace(EVERYWHERE, allows=False), ()),
    ],
)
def test_denied_rights_are_denied(denied: TopicRule, left: tuple[TopicName, ...]) -> None:
    """Whatever allows it; but only for the denied topics and hosts."""
    found = other_writers((OUT, MARKERS), (EVERYWHERE, denied), None)
    assert tuple(topic for one in found for topic in one.topics) == left


def test_a_right_from_one_host_that_is_denied_there() -> None:
    """From another one it would be allowed."""
    near = replace(EVE, host="10.0.0.1")
    assert other_writers((OUT,), (near, replace(near, allows=False)), None) == ()
    far = replace(near, host="10.0.0.2")
    (found,) = other_writers((OUT,), (near, far, replace(near, allows=False)), None)
    assert found.by == (far,)


def test_where_everybody_may_write_no_principal_is_named() -> None:
    """Except those to whom it is denied on all of these topics."""
    everybody = replace(EVERYWHERE, principal="User:*")
    bob = replace(EVERYWHERE, principal="User:bob", allows=False)
    assert other_writers((OUT,), (everybody, EVE, bob), "User:medusa") == (
        Writer("User:*", (OUT,), (everybody,), ("User:bob",)),
    )
    (found,) = other_writers((OUT, MARKERS), (everybody, replace(bob, topics="n.out")), None)
    assert (found.topics, found.but) == ((OUT, MARKERS), ())
    near = replace(everybody, host="10.0.0.1")
    found_both = other_writers((OUT,), (near, EVE), None)
    assert [one.principal for one in found_both] == ["User:*", "User:eve"]


def test_no_rules_and_no_topics() -> None:
    """There are no principals: super users are in no list."""
    assert other_writers((OUT,), (), None) == ()
    assert other_writers((), (EVERYWHERE,), None) == ()
