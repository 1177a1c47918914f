"""Other principals that may write into topics that only fragments should write. Pure.

By Kafka's rules: a denial overrides every permission; `ALL` includes `WRITE`; a rule applies to one
topic, to a prefix, or to all topics. Super users are in no list.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from brokers.records import ANYWHERE, EVERYBODY, TopicRule
from pipeline.ids import TopicName

_WRITING = frozenset({"WRITE", "ALL"})


@dataclass(frozen=True, slots=True)
class Writer:
    """A principal that may write.

    Args:
        principal: its name in Kafka; `EVERYBODY` for all.
        topics: those of the given topics that it may write.
        by: the rules that allow it.
        but: for `EVERYBODY`: the principals that are denied.
    """

    principal: str
    topics: tuple[TopicName, ...]
    by: tuple[TopicRule, ...]
    but: tuple[str, ...] = ()


def other_writers(
    topics: Sequence[TopicName], rules: Iterable[TopicRule], own: str | None
) -> tuple[Writer, ...]:
    """The principals other than this user that may write into some topics, sorted by name.

    Where everybody may, principals that another rule allows as well are not listed separately.

    Args:
        topics: the topics to check.
        rules: the brokers' rules for topics.
        own: this user's principal; None: unknown, so it may be one of the result.
    """
    about = {t: [r for r in rules if r.operation in _WRITING and _covers(r, t)] for t in topics}
    named = {rule.principal for of in about.values() for rule in of}
    open_to_all = {
        topic
        for topic, of in about.items()
        if any(rule.host == ANYWHERE for rule in _allowing(EVERYBODY, of))
    }
    found = []
    for principal in sorted(named - {own}):
        asked = topics if principal == EVERYBODY else [t for t in topics if t not in open_to_all]
        by = {topic: rules for topic in asked if (rules := _allowing(principal, about[topic]))}
        if by:
            denied = _denied(about[topic] for topic in by) - {own, EVERYBODY}
            found.append(
                Writer(
                    principal,
                    tuple(by),
                    tuple(dict.fromkeys(rule for rules in by.values() for rule in rules)),
                    tuple(sorted(denied)) if principal == EVERYBODY else (),
                )
            )
    return tuple(found)


def _covers(rule: TopicRule, topic: TopicName) -> bool:
    if rule.prefixed:
        return topic.startswith(rule.topics)
    return rule.topics in {"*", topic}


def _allowing(principal: str, rules: Iterable[TopicRule]) -> list[TopicRule]:
    """The rules that allow writing a topic to a principal by name and are not denied."""
    of = [rule for rule in rules if rule.principal in {principal, EVERYBODY}]
    denied = {rule.host for rule in of if not rule.allows}
    if ANYWHERE in denied:
        return []
    return [r for r in of if r.allows and r.principal == principal and r.host not in denied]


def _denied(each: Iterable[list[TopicRule]]) -> set[str]:
    """The principals that are denied by rules without restriction on each of some topics."""
    found = [{r.principal for r in of if not r.allows and r.host == ANYWHERE} for of in each]
    return set.intersection(*found)
