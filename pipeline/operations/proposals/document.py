"""Generator of a network document for a topic, with measurements in comments. Pure."""

import json
import re
from dataclasses import dataclass

from pipeline import durations
from pipeline.counting import counted
from pipeline.ids import Subject, TopicName
from pipeline.network.streams import AHEAD_MS, IDLE_AFTER_MS, LATENESS_MS
from pipeline.network.types import Columns
from pipeline.operations.proposals.measurements import Disorder, Measurements

_SECOND, _MINUTE, _HOUR, _DAY = (durations.UNITS_MS[unit] for unit in "smhd")
ROUND = (
    *(count * _SECOND for count in (1, 2, 5, 10, 15, 30)),
    *(count * _MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * _HOUR for count in (1, 2, 6, 12)),
    _DAY,
)
"""Proposed durations."""
_IDLE_MAX_MS = durations.parse("10m")
_ENOUGH = 1_000
"""Smallest sample that shows the disorder of a topic."""
_NAME_MAX = 40
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.()-]*")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
"""Texts that YAML parses as other types unless they are quoted."""
_HIDDEN = frozenset({"window_start", "window_end"})
"""Columns of a window."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The topic of a document, and its schema in the registry."""

    topic: TopicName
    subject: Subject
    version: int
    columns: Columns


def rounded(length_ms: int) -> int:
    """The shortest proposed duration that is not below a length.

    >>> [durations.format(rounded(ms)) for ms in (0, 1_000, 3_001, 90_000, 200_000_000)]
    ['1s', '1s', '5s', '2m', '3d']
    """
    if length_ms > _DAY:
        return -(-length_ms // _DAY) * _DAY
    return next(step for step in ROUND if step >= length_ms)


def stream_name(topic: TopicName) -> str:
    """Name of the stream of a topic, and of its network.

    >>> stream_name(TopicName("Prod.Trades-v2")), stream_name(TopicName("2024"))
    ('prod_trades_v2', 'topic_2024')
    """
    name = re.sub(r"[^a-z0-9_]+", "_", topic.lower()).strip("_")
    name = name if name[:1].isalpha() and name not in _WORDS else f"topic_{name}"
    return name[:_NAME_MAX].rstrip("_")


def box_name(topic: TopicName) -> str:
    """Name of the box that counts the records of a topic."""
    return f"{stream_name(topic)}_per_minute"


def document(about: Subscribed, found: Measurements) -> str:
    """YAML text of a network that counts the records of a topic per minute."""
    stream, box = stream_name(about.topic), box_name(about.topic)
    columns = {column.name.lower() for column in about.columns}
    counts = "records" if "records" not in columns else "count_of_records"
    key = found.key if found.key is not None and found.key.lower() not in _HIDDEN else None
    by = f"[{_scalar(key)}]" if key is not None else "[]"
    ahead = found.ahead_ms is not None and found.ahead_ms > AHEAD_MS
    lines = [
        *_comment("", _made_from(about, found)),
        f"network: {stream}",
        "",
        "streams:",
        f"  {stream}:",
        f"    topic: {_scalar(about.topic)}",
        f"    subject: {_scalar(about.subject)}",
        *_comment("    ", _about_event_time(found)),
        f"    event_time: {_scalar(found.event_time.expression)}",
        *_comment("    ", _about_lateness(found.disorder)),
        f"    lateness: {durations.format(lateness_ms(found.disorder))}",
        *_comment("    ", _about_idle(found.gap_ms)),
        f"    idle_after: {durations.format(idle_after_ms(found.gap_ms))}",
    ]
    if ahead and found.ahead_ms is not None:
        most = durations.spell(found.ahead_ms)
        measured = f"99.9 % of the event times were at most {most} beyond Kafka's timestamps."
        lines += [
            *_comment("    ", measured),
            f"    ahead: {durations.format(rounded(found.ahead_ms))}",
        ]
    lines += [
        "    start: earliest     # or latest: only what comes after the first deploy",
        "",
        "boxes:",
        *_comment("  ", _about_key(found, key, about.columns)),
        f"  {box}:",
        f"    aggregate: {stream}",
        "    window: 1m",
        f"    by: {by}",
        f"    compute: {{{counts}: count(*)}}",
        *([f"    key: {by}"] if key is not None else []),
        "",
        "outputs:",
        f"  {box}: {{topic: {_scalar(output_topic(about.topic))}}}",
    ]
    return "\n".join(lines) + "\n"


def output_topic(topic: TopicName) -> TopicName:
    """The topic of the counts."""
    return TopicName(f"{topic}-per-minute")


def lateness_ms(disorder: Disorder | None) -> int:
    """Lateness that includes 99.9 % of the records; at least the default for few records."""
    if disorder is None:
        return LATENESS_MS
    least = 0 if disorder.records >= _ENOUGH else LATENESS_MS
    return max(least, rounded(disorder.nearly_all_ms))


def idle_after_ms(gap_ms: int | None) -> int:
    """The longest gap, rounded up, within bounds: an idle partition delays results by it."""
    return min(_IDLE_MAX_MS, max(IDLE_AFTER_MS, rounded(gap_ms or 0)))


# --- comments -----------------------------------------------------------------------------------


def _made_from(about: Subscribed, found: Measurements) -> str:
    source = f"topic {about.topic} with its schema, {about.subject} version {about.version}"
    if not found.records:
        return (
            f"Made from {source}. The topic holds no records yet, so nothing was measured: all "
            "times below are defaults."
        )
    size = f"{counted(found.records, 'record')} of {counted(found.partitions, 'partition')}"
    text = (
        f"Made from {source}. The newest {size} were sampled; the measurement is in the "
        "comment above each proposal."
    )
    if found.undecoded:
        text += f" {found.undecoded} of them could not be read, the first since: "
        text += f"{found.first_problem}."
    return text


def _about_event_time(found: Measurements) -> str:
    best = found.event_time
    text = f"Event time: {best.origin}"
    if found.disorder is None:
        text += ", not measured in any record"
    if best.away_ms is not None:
        text += f", in the median {durations.spell(best.away_ms)} from Kafka's timestamp"
    if best.missing:
        text += f"; {counted(best.missing, 'record')} without one become dead letters"
    return text + (f". Others: {', '.join(found.others)}." if found.others else ".")


def _about_lateness(disorder: Disorder | None) -> str:
    if disorder is None:
        return "How far behind the newest record of its partition a record may be: not measured."
    text = (
        f"Of {counted(disorder.records, 'record')} 99.9 % were at most "
        f"{durations.spell(disorder.nearly_all_ms)} behind the newest one before them in their "
        f"partition, the farthest {durations.spell(disorder.largest_ms)}."
    )
    if disorder.records < _ENOUGH:
        text += " These are few, so it is not less than the default."
    return text


def _about_idle(gap_ms: int | None) -> str:
    if gap_ms is None:
        return "After how long without records a partition is idle: not measured."
    text = f"The longest time between two records of a partition was {durations.spell(gap_ms)}."
    if gap_ms > _IDLE_MAX_MS:
        text += " A partition that is silent for longer than this is idle."
    return text


def _about_key(found: Measurements, key: str | None, columns: Columns) -> str:
    if key is not None:
        return f"The key of the records is {key}, so they are counted by it."
    names = ", ".join(column.name for column in columns)
    reason = "No record was sampled" if not found.records else "No field is the key of the records"
    return f"{reason}, so all are counted together. Columns to count by: {names}."


def _comment(indent: str, text: str) -> list[str]:
    """Lines of a comment."""
    lines = [""]
    for word in " ".join(text.split()).split(" "):
        if len(indent) + len(lines[-1]) + len(word) > 96 and lines[-1]:  # noqa: PLR2004 - a line
            lines.append("")
        lines[-1] += f" {word}"
    return [f"{indent}#{line}" for line in lines]


def _scalar(text: str) -> str:
    """A YAML scalar, quoted where needed."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)
