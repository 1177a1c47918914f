"""Topics of a network: valid names, collisions, retention."""

import re
from collections.abc import Mapping

from pipeline import durations
from pipeline.ids import TopicName
from pipeline.names import INTERNAL_SUFFIXES, boundaries_topic, tentative_topic
from pipeline.network.fields import Fields, Report, Text

NAME_MAX = 249
"""Kafka's limit."""

RETENTION_MIN_MS = durations.parse("1m")
INTERNAL_RETENTION = "internal_retention"
NEEDED = "needed"

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
    external: Mapping[str, Text], outputs: Mapping[str, Text], report: Report
) -> None:
    """Report chosen topics that two streams share, or that Medusa needs beside a chosen one.

    Kafka treats `.` and `_` in names as equal, so they are compared as equal. Topics that Medusa
    names begin with the participant, so the planner checks those.

    Args:
        external: external stream → its topic.
        outputs: box → the topic chosen for its stream.
        report: receives mistakes.
    """
    owners = {
        _folded(topic): what
        for box, chosen in outputs.items()
        for topic, what in (
            (boundaries_topic(TopicName(chosen.value)), f"the boundaries of box {box}"),
            (tentative_topic(TopicName(chosen.value)), f"the tentative topic of box {box}"),
        )
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


def _folded(topic: str) -> str:
    return topic.replace(".", "_")


def read_internal_retention(fields: Fields) -> bool:
    """Whether topics of streams that are no outputs keep what their readers need, and no more."""
    return fields.choice(INTERNAL_RETENTION, (NEEDED,), "") == NEEDED
