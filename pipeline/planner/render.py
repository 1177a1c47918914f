"""Changes as text for people and as plain data for programs."""

from collections.abc import Iterator

from pipeline.counting import counted
from pipeline.errors import Problem
from pipeline.planner.arrows import ARROW_US, Arrow
from pipeline.planner.changes import Action, Changes, Item, ItemKind
from pipeline.planner.inputs import Announced
from pipeline.planner.plan import NewTopic
from schemas.json_value import JsonObject

FORMAT_VERSION = 1
"""Of `changes_as_data`; incremented when a key is removed or redefined, not when one is added."""

_MARKS = {
    Action.CREATE: "+",
    Action.CHANGE: "~",
    Action.RESTART: "~",
    Action.REMOVE: "-",
    Action.KEEP: " ",
}
_HEADINGS = {
    ItemKind.FRAGMENT: "fragments",
    ItemKind.TOPIC: "topics",
    ItemKind.SCHEMA: "schemas",
}


def render_changes(changes: Changes) -> str:
    """The effects of a deploy: `+` new, `~` changed or restarted, `-` removed, `!` refused.

    Kept things are only counted. Ends with a line feed.
    """
    return "\n".join(_lines(changes)) + "\n"


def changes_as_data(changes: Changes) -> JsonObject:
    """The same for programs: plain data with stable keys."""
    return {
        "format_version": FORMAT_VERSION,
        "network": changes.network.name,
        "deployed_version": changes.version,
        "pending": changes.pending,
        "refused": bool(changes.problems),
        "restarts": changes.restarts,
        "summary": changes.summary,
        **{
            heading: [_item_data(item) for item in changes.items if item.kind is kind]
            for kind, heading in _HEADINGS.items()
        },
        "create_topics": [_topic_data(topic) for topic in changes.create_topics],
        "missing_topics": [_topic_data(topic) for topic in changes.missing_topics],
        "problems": [_problem_data(problem) for problem in changes.problems],
        "warnings": list(changes.warnings),
        "inputs": [_announced_data(one) for one in changes.announced],
        "arrows": [_arrow_data(one) for one in changes.arrows],
    }


def _lines(changes: Changes) -> Iterator[str]:
    deployed = "not deployed yet" if changes.version is None else f"version {changes.version}"
    yield f"network {changes.network}: {deployed}"
    for kind, heading in _HEADINGS.items():
        items = tuple(item for item in changes.items if item.kind is kind)
        if items:
            yield from item_lines(items, heading)
        if kind is ItemKind.FRAGMENT and changes.arrows:
            yield from _arrow_lines(changes.arrows)
    yield changes.summary
    yield from (f"warning: {warning}" for warning in changes.warnings)
    if changes.problems:
        yield f"refused, {counted(len(changes.problems), 'problem')}:"
        yield from (f"  {problem}" for problem in changes.problems)
    elif not changes.pending:
        yield "nothing to do"


def _arrow_lines(arrows: tuple[Arrow, ...]) -> Iterator[str]:
    """The arrows between fragments, each with its cost."""
    made = sum(one.is_new for one in arrows)
    counts = {"create": made, "remove": len(arrows) - made}
    yield f"arrows ({', '.join(f'{count} {what}' for what, count in counts.items() if count)})"
    names = [f"{one.writer} → {one.reader}" for one in arrows]
    width = max(map(len, names))
    for one, name in zip(arrows, names, strict=True):
        yield f"  {'+' if one.is_new else '-'} {name:<{width}}  {one}"


def item_lines(items: tuple[Item, ...], heading: str = "fragments") -> Iterator[str]:
    """A heading with the number of items per action, and a line for each item worth displaying."""
    yield f"{heading} ({_counts(items)})"
    shown = [
        item for item in items if item.action is not Action.KEEP or item.reasons or item.refused
    ]
    width = max((len(item.name) for item in shown), default=0)
    for item in shown:
        mark = "!" if item.refused else _MARKS[item.action]
        first, *more = item.reasons or ("",)
        yield f"  {mark} {item.name:<{width}}  {item.action.value:<7}  {first}".rstrip()
        yield from (f"    {'':<{width}}  {'':<7}  {reason}" for reason in more)


def _counts(items: tuple[Item, ...]) -> str:
    """For example `2 create, 1 keep`, in the order in which the actions are declared."""
    counts = ((action, sum(item.action is action for item in items)) for action in Action)
    return ", ".join(f"{count} {action.value}" for action, count in counts if count)


def _item_data(item: Item) -> JsonObject:
    return {
        "name": item.name,
        "action": item.action.value,
        "reasons": list(item.reasons),
        "refused": item.refused or None,
        "hint": item.hint or None,
        "details": list(item.details),
        "state": item.fate.value if item.fate else None,
        "moves_from": item.moves_from or None,
    }


def _announced_data(one: Announced) -> JsonObject:
    return {
        "fragment": one.fragment,
        "stream": one.stream,
        "topic": one.topic,
        "records": one.fared.value,
        "ranges": [
            {"partition": partition, "begin": begin, "end": end}
            for partition, begin, end in one.ranges
        ],
    }


def _arrow_data(one: Arrow) -> JsonObject:
    return {
        "from": one.writer,
        "to": one.reader,
        "topic": one.topic,
        "action": (Action.CREATE if one.is_new else Action.REMOVE).value,
        "cost_us": ARROW_US,
    }


def _topic_data(topic: NewTopic) -> JsonObject:
    return {
        "name": topic.name,
        "partitions": topic.partitions,
        "replication": topic.replication,
        "config": dict(topic.config),
        "external": topic.external,
    }


def _problem_data(problem: Problem) -> JsonObject:
    return {
        "message": problem.message,
        "box": problem.box or None,
        "hint": problem.hint or None,
        "details": list(problem.details),
    }
