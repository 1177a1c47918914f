"""Topics of a network: valid names, collisions, retention."""

import re
from collections.abc import Iterable, Mapping, Sequence

from pipeline import durations
from pipeline.ids import BoxName, FragmentName, NetworkName, ParticipantId, TopicName
from pipeline.names import (
    INTERNAL_SUFFIXES,
    FragmentNames,
    boundaries_topic,
    derived_topic,
    tentative_topic,
)
from pipeline.network.fields import Fields, Report, Text

NAME_MAX = 249
"""Kafka's limit."""

RETENTION_MIN_MS = durations.parse("1m")

_PATTERN = re.compile(r"[a-zA-Z0-9._-]+")


def check_name(topic: Text, what: str, report: Report, *, derived: bool) -> bool:
    """Whether a topic name chosen in the document is valid; otherwise reported.

    Args:
        topic: the name.
        what: whose topic, for the message.
        report: receives mistakes.
        derived: whether Medusa writes it, so that names with suffixes must be valid as well, and
            the name itself may not have one: it could be an internal topic of another network.
    """
    name = TopicName(topic.value)
    longest = max(len(boundaries_topic(name)), len(tentative_topic(name))) if derived else len(name)
    message, hint = "", "letters, digits, '.', '_' and '-'"
    if not _PATTERN.fullmatch(name) or name in (".", ".."):
        message = f"{topic.value!r} is no name for a topic"
    elif longest > NAME_MAX:
        message = f"the name of a topic is too long by {longest - NAME_MAX} characters"
    elif derived and name.endswith(INTERNAL_SUFFIXES):
        message = f"{topic.value} ends like a topic that Medusa keeps for itself"
        hint = f"choose any name that does not end in {', '.join(INTERNAL_SUFFIXES)}"
    if message:
        report.add(f"{what}: {message}", topic.line, hint=hint)
    return not message


def read_retention(fields: Fields) -> int | None:
    """The retention of a created topic, in milliseconds; None: not declared."""
    found = fields.text("retention")
    what = f"retention of {fields.what}"
    return None if found is None else fields.as_duration(found, what, low=RETENTION_MIN_MS)


def check_collisions(
    network: NetworkName,
    external: Mapping[str, Text],
    outputs: Mapping[str, Text],
    boxes: Sequence[str],
    report: Report,
) -> None:
    """Report chosen topics that two streams share, or that Medusa needs itself.

    Kafka treats `.` and `_` in names as equal, so they are compared as equal.

    Args:
        network: the network's name.
        external: external stream → its topic.
        outputs: box → the topic chosen for its stream.
        boxes: every box.
        report: receives mistakes.
    """
    owners = {
        _folded(topic): owner
        for box in boxes
        for topic, owner in _own_topics(network, box, outputs.get(box))
    }
    for streams, word in ((external, "stream"), (outputs, "output")):
        for name, topic in streams.items():
            folded = _folded(topic.value)
            if folded in owners:
                report.add(
                    f"topic {topic.value} of {word} {name} is already {owners[folded]}", topic.line
                )
            else:
                owners[folded] = f"the topic of {word} {name}"


def _own_topics(network: NetworkName, box: str, chosen: Text | None) -> Iterable[tuple[str, str]]:
    """The topics that Medusa itself creates for a box, and the purpose of each."""
    name = derived_topic(network, BoxName(box))
    if chosen is None:
        yield name, f"the topic of box {box}"
    base = TopicName(chosen.value) if chosen is not None else name
    yield boundaries_topic(base), f"the boundaries of box {box}"
    yield tentative_topic(base), f"the tentative topic of box {box}"
    names = FragmentNames(ParticipantId(""), network, FragmentName(box))
    for topic in (names.dead_letters, names.redrive, names.advances, names.markers):
        yield topic, f"a topic that Medusa keeps for box {box}"


def _folded(topic: str) -> str:
    return topic.replace(".", "_")
