"""Settings of existing topics that would lose records or change results. Pure.

An existing topic is never changed, so an unsuitable setting is refused, with the command that fixes
it. Accepted settings by kind of topic:

| topic | `cleanup.policy` | `message.timestamp.type` | `retention.ms`, `retention.bytes` |
|---|---|---|---|
| output | `delete` | `CreateTime` | any |
| tentative results | `delete` | `CreateTime` | above the bound of availability, any |
| internal, kept by need | `delete` | `CreateTime` | `-1` |
| redrive | `delete` | `CreateTime` | any, `-1` |
| dead letters | `delete` | `LogAppendTime` | `-1` |
| markers, boundaries | `compact` | `LogAppendTime` | any: only `delete` uses them |
| input | any; a compacted one is a warning | any | any |

`compact,delete` is not accepted: it deletes the last marker of a stopped lane, and of the others
all records of a key except the last.

A `min.compaction.lag.ms` of the markers' topic that is too short is a warning: a follower that does
not find the markers reads what is missing at once, without a comparison of these batches.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pipeline.planner.plan import NewTopic

POLICY: Final = "cleanup.policy"
STAMPS: Final = "message.timestamp.type"
BY_BROKER: Final = "LogAppendTime"
RETENTION_MS: Final = "retention.ms"
RETENTION_BYTES: Final = "retention.bytes"
MIN_COMPACTION_LAG_MS: Final = "min.compaction.lag.ms"
UNLIMITED: Final = "-1"
_NEEDED: Final = (
    "a rebuild of state may need dead letters of any age, and the node removes old ones that it "
    "does not need"
)
_LACKED: Final = (
    "a fragment that rests for longer would not find again what it has not read, and stop"
)
_READ: Final = (
    "a fragment may need its records however old they are, and their writer removes those that no "
    "fragment needs"
)
_BOUND: Final = (
    "results would be removed before the availability bound has passed, and could not be settled"
)
_GONE: Final = (
    "markers may be gone before a follower has read them, so it cannot compare their batches, and "
    "reads what is missing at once"
)
_SENT: Final = "it would forget which dead letters were sent again, and they could be sent twice"


@dataclass(frozen=True, slots=True)
class Misfit:
    """An unsuitable setting of an existing topic.

    Args:
        message: topic, setting, its value, the required one, and why.
        hint: how to fix it.
        fatal: whether a deploy is refused; otherwise it is a warning.
    """

    message: str
    hint: str
    fatal: bool


def misfits(topic: NewTopic, config: Mapping[str, str]) -> Iterator[Misfit]:
    """The settings of an existing topic that do not suit a network's needs.

    Args:
        topic: the topic as the network would create it.
        config: its settings in force; missing ones are not checked.
    """
    for setting, value in topic.config:
        found = config.get(setting)
        why = None if found is None else _why(topic, setting, value, found)
        if why is not None:
            yield Misfit(
                f"topic {topic.name} has {setting}={found}, the network needs {value}: {why}",
                mend(topic, setting, value),
                fatal=not topic.external and setting != MIN_COMPACTION_LAG_MS,
            )


def mend(topic: NewTopic, setting: str, value: str) -> str:
    """The command that sets one setting of an existing topic."""
    return (
        "set it with Kafka's own tool: `kafka-configs.sh --bootstrap-server HOST:PORT --alter "
        f"--entity-type topics --entity-name {topic.name} --add-config {setting}={value}`"
    )


def _why(topic: NewTopic, setting: str, value: str, found: str) -> str | None:
    """The consequence of a setting's present value; None: it is suitable."""
    if setting == POLICY and found != value:
        if value == "compact":
            return "its last record would be removed by age"
        if "compact" in found:
            return "records with the same key would be removed that are still needed"
    if setting == STAMPS and found != value:
        if value == "CreateTime":
            return "its records' timestamps are their event times, and the broker replaces them"
        return "its records count from when the broker took them"
    return _why_short(topic, setting, value, found) if found != UNLIMITED else None


def _why_short(topic: NewTopic, setting: str, value: str, found: str) -> str | None:
    """The consequence of a setting that is too short; None: it is suitable."""
    if setting == MIN_COMPACTION_LAG_MS:
        return _GONE if int(found) < int(value) else None
    if setting in {RETENTION_MS, RETENTION_BYTES} and value == UNLIMITED:
        kinds = ((topic.by_need, _READ), (topic.when_needed, _SENT), (topic.trimmed, _NEEDED))
        return next((why for is_so, why in kinds if is_so), _LACKED)
    too_short = setting == RETENTION_MS and int(found) <= topic.kept_above_ms
    return _BOUND if too_short else None
