"""The effects of a deploy on each fragment: only changed ones restart. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from brokers.records import MADE_AGAIN
from pipeline.errors import Problem
from pipeline.ids import FragmentName, Incarnation
from pipeline.labels import format_selector
from pipeline.planner.arrows import state_elsewhere, state_left
from pipeline.planner.changes import Action, Current, DeployedFragment, Item, ItemKind
from pipeline.planner.describe import (
    decoding_differences,
    differences,
    key_text,
    state_differences,
)
from pipeline.planner.digest import fragment_digest, same_format
from pipeline.planner.inputs import announced, answers, question, undecided
from pipeline.planner.instants import instant
from pipeline.planner.lost_enum_symbols import lost_symbols
from pipeline.planner.plan import Fragment, Plan
from pipeline.planner.state import (
    CHOSEN,
    EMPTY_MEANS,
    REBUILD_MEANS,
    WORDS,
    Choices,
    Fate,
    OnChange,
    fate,
)

_REFUSED: Mapping[Fate, str] = {
    Fate.UNDECIDED: "its state does not fit the new plan",
    Fate.UNKNOWN: "another version of Medusa made its state: whether it fits is not known",
}
_OTHER_PLAN = "its plan differs from the one that was deployed"
_OTHER_VERSION = "another version of Medusa deployed it"
_ANEW = "it begins anew, since another fragment was the last to write its output"
_LET_IT_START = (
    "let a node of this version start the fragment as it is deployed: it builds the state from the "
    "log, exactly; then deploy again."
)
_WORDS = {"new": Action.CREATE, "changed": Action.CHANGE, "removed": Action.REMOVE}
ANY_NODE, NOTHING = "any", "none"
START_OVER = "deploy under another network name, or destroy this one first."


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Comparison of a plan with the deployed one, by fragment.

    Args:
        new: the desired plan.
        old: the deployed plan, if it can still be made; used for explaining changes.
        current: the existing state.
        choices: the user's choices for states that do not fit.
    """

    new: Plan
    old: Plan | None
    current: Current
    choices: Choices

    def items(self) -> Iterator[Item]:
        """An item for every fragment, removed ones last."""
        yield from (self._with_inputs(item) for item in self._items())

    def _items(self) -> Iterator[Item]:
        deployed = {fragment.name: fragment for fragment in self.current.fragments}
        before = {fragment.name: fragment for fragment in self.old.fragments} if self.old else {}
        for fragment in self.new.fragments:
            record = deployed.pop(fragment.name, None)
            if record is None:
                new = self._with_state_left(self._new(fragment), fragment)
                yield self._with_key(new, fragment)
            elif record.digest != fragment_digest(fragment):
                changed = self._changed(fragment, before.get(fragment.name), record)
                yield self._with_key(self._with_state_left(changed, fragment), fragment)
            else:
                yield self._same(fragment, record)
        for name in deployed:
            yield Item(
                ItemKind.FRAGMENT,
                name,
                Action.REMOVE,
                ("no longer in the network: it stops; its topics and records stay",),
            )

    def invalid_choices(self) -> Iterator[Problem]:
        """Choices for fragments without a state."""
        fragments = {fragment.name: fragment for fragment in self.new.fragments}
        for name, choice in self.choices.named.items():
            fragment = fragments.get(name)
            if fragment is None:
                choices = tuple(fragments)
                yield Problem(f"--state names {name}, which is no fragment", choices=choices)
            elif fragment.stateful_box is None and choice is not OnChange.EMPTY:
                yield Problem(
                    f"--state names {name}, which keeps no state",
                    box=name,
                    hint=f"`--state {name}=empty` lets it pass over what its inputs lack.",
                )
            elif name in self.current.anew:
                yield Problem(f"--state names {name}, which begins anew without a state", box=name)
            elif name not in self.current.states:
                yield Problem(f"--state names {name}, which has read nothing yet", box=name)

    def chosen(self, items: tuple[Item, ...]) -> dict[FragmentName, tuple[OnChange, Incarnation]]:
        """The choices for the lanes, by fragment."""
        states = self.current.states
        names = ((FragmentName(item.name), item.fate) for item in items)
        return {
            name: (OnChange(what.value), states[name].incarnation)
            for name, what in names
            if what in CHOSEN and what is not None
        }

    def _new(self, fragment: Fragment) -> Item:
        reasons = (f"writes {fragment.output.topic}",)
        item = Item(ItemKind.FRAGMENT, fragment.name, Action.CREATE, reasons)
        if fragment.name not in self.current.has_run:
            anew = fragment.name in self.current.anew
            return replace(item, reasons=(*reasons, _ANEW)) if anew else item
        return self._with_fate(
            replace(item, reasons=(*reasons, "it has run before, in an earlier version")), fragment
        )

    def _changed(
        self, fragment: Fragment, before: Fragment | None, record: DeployedFragment
    ) -> Item:
        found = before and _plan_differences(before, fragment)
        by_us = same_format(record.digest, fragment_digest(fragment))
        otherwise = _OTHER_PLAN if by_us else _OTHER_VERSION
        reasons = found or (otherwise,)
        if record.paused:
            reasons = (*reasons, "it is paused and stays so")
        item = Item(ItemKind.FRAGMENT, fragment.name, Action.CHANGE, reasons)
        if fragment.name not in self.current.has_run:
            return item
        item = self._with_fate(item, fragment, before)
        if item.fate is Fate.UNDECIDED and before is not None:
            changed = (*state_differences(before, fragment), *lost_symbols(before, fragment))
            item = replace(item, details=(*changed, *item.details))
        return self._cut_off(item, record)

    def _with_state_left(self, item: Item, fragment: Fragment) -> Item:
        """The item, with what becomes of a state that another deployed fragment has made.

        Of one that is removed it is not known whether it has run.
        """
        other, ran = state_elsewhere(fragment, self.old), self.current.has_run
        if other is None or (other not in ran and any(o.name == other for o in self.new.fragments)):
            return item
        left = state_left(fragment, other, has_run=fragment.name in ran)
        return replace(item, reasons=(*item.reasons, left))

    def _with_key(self, item: Item, fragment: Fragment) -> Item:
        """Refused if its topic would contain records by two keys, also from an earlier writer."""
        for before in self.old.fragments if self.old else ():
            if before.name in self.current.has_run and _key_changed(before, fragment):
                return replace(
                    item,
                    refused=f"the key of {fragment.output.topic} cannot change from "
                    f"{key_text(before.output)} to {key_text(fragment.output)}: records of "
                    "both would lie in it, each in its own partition and order",
                    hint="name another topic for it under `outputs`.",
                    details=(),
                )
        return item

    def _same(self, fragment: Fragment, record: DeployedFragment) -> Item:
        """An unchanged fragment: kept, restarted, or cut off from its topics."""
        item = Item(ItemKind.FRAGMENT, record.name, Action.KEEP)
        if record.paused:
            item = replace(item, reasons=("it is paused and stays so",))
        elif not record.running:
            reason = "it was stopped: it goes on where it stopped"
            item = replace(item, action=Action.RESTART, reasons=(reason,))
        settled = (*_settled_otherwise(fragment, record), *self._bounded_otherwise(fragment))
        item = replace(item, reasons=(*item.reasons, *settled))
        if record.name not in self.current.has_run:
            return item
        reads_others = self._topics_changed(record) or self._begins_inputs(record)
        if self.choices.some or reads_others:
            found = self._with_fate(item, fragment)
            if found.fate in CHOSEN:
                item = replace(found, action=Action.RESTART)
            elif reads_others and found.refused:
                item = found
        return self._cut_off(item, record)

    def _bounded_otherwise(self, fragment: Fragment) -> Iterator[str]:
        """What changes about the bound of an unchanged fragment, which has no tentative results."""
        fragments = self.old.fragments if self.old else ()
        old = next((one for one in fragments if one.name == fragment.name), None)
        if old is not None and old.availability != fragment.availability:
            was, now = old.availability or NOTHING, fragment.availability or NOTHING
            yield f"changed: availability `{was}` → `{now}`"

    def _topics_changed(self, record: DeployedFragment) -> bool:
        """Whether a topic was recreated since the deploy: also its state's."""
        exist = {topic.name: topic.topic_id for topic in self.current.topics}
        return any(exist.get(name) != topic_id for name, topic_id in record.topic_ids)

    def _begins_inputs(self, record: DeployedFragment) -> bool:
        """Whether it has never read an input: an earlier lane continued after the deploy."""
        return any(one.begins for one in self.current.inputs.get(record.name, ()))

    def _with_inputs(self, item: Item) -> Item:
        """The item with the effects on inputs that the fragment begins to read or leaves."""
        name, chosen = FragmentName(item.name), self.choices.inputs
        changed = self.current.inputs.get(name, ())
        if not changed or item.action is Action.REMOVE:
            return item
        effects = (str(one) for one in announced(name, changed, chosen))
        reasons = (*(r for r in item.reasons if r != WORDS[Fate.POSITIONS]), *effects)
        action = Action.RESTART if item.action is Action.KEEP else item.action
        item = replace(item, action=action, reasons=reasons)
        open_ones = undecided(changed, chosen)
        if not open_ones:
            return item
        asked = f"fragment {name}: {'; '.join(question(one) for one in open_ones)}"
        choices = f"say {'; '.join(answers(one) for one in open_ones)}."
        return replace(
            item,
            refused="; ".join(filter(None, (item.refused, asked))),
            hint=" ".join(filter(None, (item.hint, choices))),
        )

    def _with_fate(self, item: Item, fragment: Fragment, before: Fragment | None = None) -> Item:
        """The item with the fate of the fragment's positions and state."""
        if fragment.name in self.current.anew:
            return replace(item, reasons=(*item.reasons, _ANEW))
        found = fate(fragment, self.current.states.get(fragment.name), self.choices)
        if found is Fate.KEPT and before is not None and lost_symbols(before, fragment):
            found = Fate.UNDECIDED if self.choices.every is None else Fate(self.choices.every.value)
        since = self._since(fragment) if found in {Fate.REBUILD, *_REFUSED} else ()
        goes_on = self._goes_on(fragment) if found in {*CHOSEN, *_REFUSED} else ()
        item = replace(item, reasons=(*item.reasons, WORDS[found], *since, *goes_on), fate=found)
        if found not in _REFUSED:
            return item
        name = fragment.name
        choices = (
            f"say `--state {name}=rebuild` or `--state {name}=empty`; without the name it "
            "counts for all such fragments."
        )
        return replace(
            item,
            refused=f"fragment {name} has run, and {_REFUSED[found]}",
            hint=choices if found is Fate.UNDECIDED else f"{_LET_IT_START} Or {choices}",
            details=(f"rebuild: {REBUILD_MEANS}", *since, f"empty: {EMPTY_MEANS}", *goes_on),
        )

    def _goes_on(self, fragment: Fragment) -> tuple[str, ...]:
        """From when on there are results of the new plan, as far as known."""
        kept = self.current.states.get(fragment.name)
        if kept is None or kept.promised_ms is None:
            return ()
        after = instant(kept.promised_ms)
        left_out = "a window of the new plan that ends by then is left out"
        return (f"its results go on after {after}, or later: {left_out}",)

    def _since(self, fragment: Fragment) -> tuple[str, ...]:
        """How far back the inputs reach, as far as known."""
        oldest = self.current.oldest
        topics = dict.fromkeys(stream.topic for stream in fragment.inputs)
        return tuple(
            f"{topic} holds records since {instant(oldest[topic])}"
            for topic in topics
            if topic in oldest
        )

    def _cut_off(self, item: Item, record: DeployedFragment) -> Item:
        """Refused if a topic of its own was deleted or recreated.

        A topic that the new plan does not need may be missing. A recreated input counts as one
        never read: see `inputs.py`.
        """
        needed = {topic.name for topic in self.new.topics}
        inputs = {
            stream.topic
            for fragment in self.new.fragments
            if fragment.name == record.name and record.name in self.current.inputs
            for stream in fragment.inputs
        }
        exist = {topic.name: topic for topic in self.current.topics}
        for name, topic_id in record.topic_ids:
            topic = exist.get(name)
            if name not in needed or name in inputs:
                continue
            if topic is None:
                what = "is gone"
            elif topic.topic_id != topic_id:
                what = MADE_AGAIN
            else:
                continue
            return replace(
                item,
                refused=f"topic {name} {what} since fragment {record.name} was deployed; the "
                "fragment's positions mean records that no longer exist",
                hint=START_OVER,
                details=(),
            )
        return item


def _key_changed(before: Fragment, after: Fragment) -> bool:
    """Whether one topic would contain records by two keys."""
    old, new = before.output, after.output
    return old.topic == new.topic and (old.key, old.key_format) != (new.key, new.key_format)


def words(old: Plan | None, new: Plan | None) -> str:
    """The changes of one version, in a few words; either plan may be unknown."""
    if new is None:
        return "planned by another version of Medusa"
    if old is None:
        return "the first version that is known"
    changed = {
        what: [item.name for item in between(old, new) if item.action is action]
        for what, action in _WORDS.items()
    }
    parts = [f"{what} {', '.join(names)}" for what, names in changed.items() if names]
    return "; ".join(parts) or "no fragment changed"


def _plan_differences(old: Fragment, new: Fragment) -> tuple[str, ...]:
    """The differences that a user can name, with those in the decoding of columns."""
    return (*differences(old, new), *decoding_differences(old, new))


def between(old: Plan, new: Plan) -> tuple[Item, ...]:
    """The changes between two versions, by fragment; removed ones come last."""
    before = {fragment.name: fragment for fragment in old.fragments}
    found: list[Item] = []
    for fragment in new.fragments:
        was = before.pop(fragment.name, None)
        if was is None:
            writes = (f"writes {fragment.output.topic}",)
            found.append(Item(ItemKind.FRAGMENT, fragment.name, Action.CREATE, writes))
        elif fragment_digest(was) == fragment_digest(fragment):
            settled = differences(was, fragment) if _is_settled_otherwise(was, fragment) else ()
            if settled:
                found.append(Item(ItemKind.FRAGMENT, fragment.name, Action.CHANGE, settled))
        else:
            reasons = _plan_differences(was, fragment)
            reasons = reasons or ("its plan differs in something that is not in the document",)
            found.append(Item(ItemKind.FRAGMENT, fragment.name, Action.CHANGE, reasons))
    gone = ("no longer in the network",)
    found += (Item(ItemKind.FRAGMENT, name, Action.REMOVE, gone) for name in before)
    return tuple(found)


def _is_settled_otherwise(was: Fragment, now: Fragment) -> bool:
    """Whether something of a fragment is another one that changes nothing of what its query does.

    That are the nodes that it runs on or that follow it, its priority, and a bound without effect.
    """
    old = (was.nodes, was.apart, was.reliability, was.priority, was.availability)
    return old != (now.nodes, now.apart, now.reliability, now.priority, now.availability)


def _settled_otherwise(fragment: Fragment, record: DeployedFragment) -> Iterator[str]:
    """What changes about the nodes that an unchanged fragment runs on, and about its priority."""
    nodes, apart = format_selector(fragment.nodes), fragment.apart
    if nodes != record.nodes:
        yield f"changed: nodes `{record.nodes or ANY_NODE}` → `{nodes or ANY_NODE}`"
    if apart != record.apart:
        was, now = (", ".join(names) or NOTHING for names in (record.apart, apart))
        yield f"changed: apart from `{was}` → `{now}`"
    if fragment.reliability != record.reliability:
        yield f"changed: reliability `{record.reliability}` → `{fragment.reliability}`"
    if fragment.priority is not record.priority:
        yield f"changed: priority `{record.priority.value}` → `{fragment.priority.value}`"
