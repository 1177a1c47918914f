"""Who else may write into topics that fragments alone should write. Pure.

By Kafka's rules: what is denied to somebody is denied, whatever allows it; `ALL` holds `WRITE`; a
rule is about one topic, about all that begin alike, or about all. Super users stand in no list.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from brokers.records import ANYWHERE, EVERYBODY, TopicRule
from pipeline.ids import TopicName

_WRITING = frozenset({"WRITE", "ALL"})


@dataclass(frozen=True, slots=True)
class Writer:
    """Somebody who may write.

    Args:
        principal: who, in Kafka's words; `EVERYBODY` is everybody.
        topics: into which of those that were asked about.
        by: the rules that allow it.
        but: of everybody: to whom it is denied.
    """

    principal: str
    topics: tuple[TopicName, ...]
    by: tuple[TopicRule, ...]
    but: tuple[str, ...] = ()


def other_writers(
    topics: Sequence[TopicName], rules: Iterable[TopicRule], own: str | None
) -> tuple[Writer, ...]:
    """Who may write into some topics, beside ourselves; sorted by who it is.

    Where everybody may, those whom another rule allows it as well are not told apart.

    Args:
        topics: those that are asked about.
        rules: what the brokers say of topics.
        own: who we are; None: that is not known, so that we may be one of them.
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
    """The rules about a topic that allow it to somebody by name, and that nothing takes back."""
    of = [rule for rule in rules if rule.principal in {principal, EVERYBODY}]
    denied = {rule.host for rule in of if not rule.allows}
    if ANYWHERE in denied:
        return []
    return [r for r in of if r.allows and r.principal == principal and r.host not in denied]


def _denied(each: Iterable[list[TopicRule]]) -> set[str]:
    """To whom it is denied everywhere on each of some topics."""
    found = [{r.principal for r in of if not r.allows and r.host == ANYWHERE} for of in each]
    return set.intersection(*found)
