from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pipeline.ids import (
    BoxName,
    FragmentName,
    Incarnation,
    Millis,
    NetworkVersion,
    StreamName,
    Subject,
    TopicName,
)
from pipeline.network.model import Box, KeyFormat, Network
from pipeline.planner.changes import (
    Action,
    Changes,
    Current,
    DeployedFragment,
    ExistingTopic,
    Item,
    ItemKind,
    RegisteredSchema,
)
from pipeline.planner.diff import changes, fitting, required_schemas
from pipeline.planner.digest import fragment_digest, plan_digest, state_digest
from pipeline.planner.inputs import ChangedInput, InputFrom
from pipeline.planner.plan import Plan
from pipeline.planner.planner import plan
from pipeline.planner.state import Choices, Fate, KeptState, OnChange
from pipeline.planner.upgrade import words
from tests.unit.planner.networks import OWNER, external, filtered, network, tolls

PLAN = plan(tolls(), OWNER)
NOTIFICATIONS, LIFE = FragmentName("toll_notifications"), Incarnation("1-5")


def deployed(made: Plan = PLAN, *, ran: bool = True) -> Current:
    """The deployed state as the plan defines it."""
    topics = tuple(
        ExistingTopic(t.name, t.partitions, f"id of {t.name}", dict(t.config)) for t in made.topics
    )
    ids = tuple((topic.name, topic.topic_id) for topic in topics)
    return Current(
        version=NetworkVersion(3),
        digest=plan_digest(made),
        fragments=tuple(
            DeployedFragment(f.name, fragment_digest(f), running=True, topic_ids=ids)
            for f in made.fragments
        ),
        has_run=frozenset(f.name for f in made.fragments) if ran else frozenset(),
        topics=topics,
        schemas=tuple(RegisteredSchema(s.subject, s.schema_json) for s in required_schemas(made)),
    )


def with_config(current: Current, topic: str, config: Mapping[str, str]) -> Current:
    """One of the topics has other settings than the plan's."""
    topics = (replace(t, config=config) if t.name == topic else t for t in current.topics)
    return replace(current, topics=tuple(topics))


def _states(made: Plan) -> dict[FragmentName, KeptState]:
    """The states that these plans made, without those of stateless fragments."""
    return {
        f.name: KeptState(state_digest(f), LIFE)
        for f in made.fragments
        if f.stateful_box is not None
    }


def _item(found: Changes, name: str) -> Item:
    return next(item for item in found.items if item.name == name)


def _actions(found: Changes) -> dict[str, Action]:
    return {item.name: item.action for item in found.fragments}


def _with_box(wanted: Network, new: Box) -> Network:
    boxes = tuple(new if box.name == new.name else box for box in wanted.boxes)
    return replace(wanted, boxes=boxes)


def _faster() -> Network:
    wanted = tolls()
    return _with_box(wanted, filtered("moving", wanted.streams[0], "`speed` > 1"))


def test_first_deploy_creates_everything() -> None:
    """Before the first deploy every fragment, topic and schema is new."""
    found = changes(PLAN, None, Current())
    assert {item.action for item in found.items} == {Action.CREATE}
    assert found.create_topics == tuple(t for t in PLAN.topics if not t.when_needed)
    assert [text.subject for text in found.register] == [
        "local.net.tolls-value",
        "local.net.tolls-key",
        "toll_notifications-out-value",
        "tow_dispatch-out-value",
    ]
    assert found.pending
    assert found.problems == ()
    assert found.restarts == 0


def test_unchanged_deploy_does_nothing() -> None:
    """The same network again keeps every item and is no new version."""
    found = changes(PLAN, PLAN, deployed())
    assert {item.action for item in found.items} == {Action.KEEP}
    assert not found.pending
    assert not found.new_version
    assert not found.create_topics
    assert not found.register
    assert not found.problems


def test_a_changed_box_changes_its_fragment_only_with_the_reason() -> None:
    """The reason contains the expression before and after; other fragments are kept."""
    found = changes(plan(_faster(), OWNER), PLAN, deployed(ran=False))
    assert _actions(found) == {
        "tolls": Action.KEEP,
        "toll_notifications": Action.CHANGE,
        "tow_dispatch": Action.KEEP,
    }
    (reason,) = _item(found, "toll_notifications").reasons
    assert reason == "changed: where of moving `speed > 0` → `speed > 1`"
    assert found.summary == "restarts: 1 of 3 fragments"
    assert found.problems == ()
    assert found.new_version


def test_a_state_that_does_not_fit_is_refused_until_a_choice() -> None:
    """The refusal names both choices, their effects, and the start of the results."""
    new = plan(_faster(), OWNER)
    since = {TopicName("sightings-topic"): Millis(1_700_000_000_000)}
    states = {f: replace(one, promised_ms=Millis(59_999)) for f, one in _states(PLAN).items()}
    current = replace(deployed(), states=states, oldest=since)
    (problem,) = (found := changes(new, PLAN, current)).problems
    assert problem.box == "toll_notifications"
    assert "its state does not fit the new plan" in problem.message
    assert "--state toll_notifications=rebuild" in problem.hint
    assert "sightings-topic holds records since 2023-11-14T22:13:20Z" in problem.details
    assert problem.details[0] == "changed: where of moving `speed > 0` → `speed > 1`"
    later = "its results go on after 1970-01-01T00:00:59.999Z, or later: a window of the new plan "
    assert any(one.startswith(later) for one in problem.details)
    assert found.chosen == {}
    for choices in (Choices(OnChange.EMPTY), Choices(named={NOTIFICATIONS: OnChange.EMPTY})):
        chosen = changes(new, PLAN, current, choices)
        assert chosen.problems == ()
        assert chosen.chosen == {NOTIFICATIONS: (OnChange.EMPTY, LIFE)}
        assert chosen.restarts == 1
        assert chosen.disturbing == (NOTIFICATIONS,)
        assert _item(chosen, NOTIFICATIONS).fate is Fate.EMPTY
        assert any(one.startswith(later) for one in _item(chosen, NOTIFICATIONS).reasons)


def test_a_state_that_fits_is_kept() -> None:
    """A larger lateness changes nothing in the state."""
    wanted = tolls()
    patient = replace(wanted, streams=(replace(wanted.streams[0], lateness_ms=60_000),))
    new = plan(patient, OWNER)
    current = replace(deployed(), states=_states(PLAN))
    found = changes(new, PLAN, current, Choices(OnChange.REBUILD))
    assert found.problems == ()
    assert found.chosen == {}
    assert {item.fate for item in found.fragments if item.action is Action.CHANGE} == {Fate.KEPT}
    assert found.restarts > 0


def test_a_named_state_is_started_anew_although_it_fits() -> None:
    """So a lane whose rebuild was refused can start again; the others are unchanged."""
    current = replace(deployed(), states=_states(PLAN))
    choices = Choices(named={FragmentName("tolls"): OnChange.REBUILD})
    found = changes(PLAN, PLAN, current, choices)
    assert _actions(found) == {
        "tolls": Action.RESTART,
        "toll_notifications": Action.KEEP,
        "tow_dispatch": Action.KEEP,
    }
    assert found.chosen == {FragmentName("tolls"): (OnChange.REBUILD, LIFE)}
    assert found.pending
    assert not found.new_version


def test_a_choice_without_effect_is_refused() -> None:
    """A fragment that does not exist, or that has read nothing, has no state to choose about."""
    choices = Choices(named={FragmentName(n): OnChange.EMPTY for n in ("nobody", "tolls")})
    first, second = changes(PLAN, PLAN, deployed(), choices).problems
    assert "nobody, which is no fragment" in first.message
    assert "tolls" in first.choices
    assert "tolls, which has read nothing yet" in second.message


def test_stateless_fragments_continue_at_their_positions() -> None:
    """Without a state the only choice, by name, is to skip deleted records."""
    source = external("s")
    old, new = (
        plan(network((source,), (filtered("f", source, f"`at` > {n}"),), ("f",)), OWNER)
        for n in (0, 1)
    )
    found = changes(new, old, deployed(old))
    assert found.problems == ()
    assert _item(found, "f").fate is Fate.POSITIONS
    assert "it goes on at its positions: nothing is lost or repeated" in _item(found, "f").reasons
    rebuild, empty = (Choices(named={FragmentName("f"): choice}) for choice in OnChange)
    (problem,) = changes(new, old, deployed(old), rebuild).problems
    assert "keeps no state" in problem.message
    ran = replace(deployed(old), states={FragmentName("f"): KeptState("1:any", LIFE)})
    for wanted in (old, new):
        chosen = changes(wanted, old, ran, empty)
        assert chosen.problems == ()
        assert _item(chosen, "f").fate is Fate.EMPTY
        assert chosen.chosen[FragmentName("f")][0] is OnChange.EMPTY
    assert changes(new, old, ran, Choices(every=OnChange.EMPTY)).chosen == {}


@pytest.mark.parametrize(
    ("change", "told"), [({"key": ()}, "none declared"), ({"key_format": KeyFormat.RAW}, " as raw")]
)
def test_the_key_of_a_topic_with_records_cannot_change(change: dict[str, Any], told: str) -> None:
    """Records of one key would be in two partitions; another topic is accepted."""
    fragment = PLAN.fragments[0]
    assert fragment.output.key
    other = replace(fragment, output=replace(fragment.output, **change))
    new = replace(PLAN, fragments=(other, *PLAN.fragments[1:]))
    current = replace(deployed(), states=_states(PLAN))
    problems = changes(new, PLAN, current).problems
    assert f"the key of {fragment.output.topic} cannot change" in problems[0].message
    assert f"{told}: records of both" in problems[0].message
    assert all("key" not in p.message for p in changes(new, PLAN, deployed(ran=False)).problems)
    another = replace(fragment.names.id, fragment=FragmentName("another"))
    renamed = replace(other, names=replace(fragment.names, id=another))
    new = replace(PLAN, fragments=(renamed, *PLAN.fragments[1:]))
    found = [problem.message for problem in changes(new, PLAN, current).problems]
    assert any(f"the key of {fragment.output.topic} cannot change" in one for one in found)


def test_a_paused_fragment_stays_paused() -> None:
    """A deploy does not start it, and reports it."""
    current = deployed()
    paused = tuple(replace(f, running=False, paused=True) for f in current.fragments)
    found = changes(PLAN, PLAN, replace(current, fragments=paused))
    assert set(_actions(found).values()) == {Action.KEEP}
    assert _item(found, "tolls").reasons == ("it is paused and stays so",)
    assert not found.pending


def test_the_summary_of_a_version() -> None:
    """New, changed and removed fragments by name."""
    wanted = tolls()
    fewer = replace(wanted, boxes=wanted.boxes[:5], outputs=wanted.outputs[:1])
    assert words(PLAN, PLAN) == "no fragment changed"
    assert words(PLAN, plan(_faster(), OWNER)) == "changed toll_notifications"
    assert words(PLAN, plan(fewer, OWNER)) == "removed tow_dispatch"
    assert words(plan(fewer, OWNER), PLAN) == "new tow_dispatch"
    assert "first" in words(None, PLAN)
    assert "another version of Medusa" in words(PLAN, None)


def test_a_change_without_the_old_plan_is_detected() -> None:
    """When the old document can no longer be planned, the digests still differ."""
    found = changes(plan(_faster(), OWNER), None, deployed(ran=False))
    assert _item(found, "toll_notifications").reasons == (
        "its plan differs from the one that was deployed",
    )


def test_removed_fragment_is_removed_and_keeps_its_topics() -> None:
    """A fragment no longer in the network stops; its output stays."""
    wanted = tolls()
    fewer = replace(wanted, boxes=wanted.boxes[:5], outputs=wanted.outputs[:1])
    found = changes(plan(fewer, OWNER), PLAN, deployed())
    assert _actions(found) == {
        "tolls": Action.KEEP,
        "toll_notifications": Action.KEEP,
        "tow_dispatch": Action.REMOVE,
    }
    assert found.problems == ()
    assert found.summary == "restarts: 0 of 2 fragments"


def test_an_added_fragment_leaves_the_others_unchanged() -> None:
    """A new box is no reason to restart running ones."""
    wanted = tolls()
    more = replace(wanted, boxes=(*wanted.boxes, filtered("all", wanted.streams[0], "`at` > 0")))
    found = changes(plan(more, OWNER), PLAN, deployed())
    assert _actions(found)["all"] is Action.CREATE
    assert set(list(_actions(found).values())[:3]) == {Action.KEEP}
    assert {topic.name for topic in found.create_topics} == {
        f"local.net.all{end}" for end in ("", ".boundaries", ".dlq", ".markers")
    }


def test_a_fragment_that_returns_continues_if_its_state_fits() -> None:
    """Its last commit marker contains the plan that made the state."""
    current = deployed()
    removed = replace(current, fragments=current.fragments[:2], states=_states(PLAN))
    found = changes(PLAN, PLAN, removed)
    assert found.problems == ()
    assert _item(found, "tow_dispatch").fate is Fate.KEPT
    strange = {name: replace(kept, digest="1:other") for name, kept in _states(PLAN).items()}
    (problem,) = changes(PLAN, PLAN, replace(removed, states=strange)).problems
    assert problem.box == "tow_dispatch"
    assert "does not fit" in problem.message


def test_stopped_fragment_is_started_again() -> None:
    """A deploy after an undeploy continues where it stopped."""
    current = deployed()
    stopped = tuple(replace(fragment, running=False) for fragment in current.fragments)
    found = changes(PLAN, PLAN, replace(current, fragments=stopped))
    assert set(_actions(found).values()) == {Action.RESTART}
    assert found.pending
    assert found.problems == ()


def test_a_recreated_topic_is_reported() -> None:
    """A topic of the same name with another id has other records."""
    current = deployed()
    topics = (replace(current.topics[0], topic_id="another"), *current.topics[1:])
    found = changes(PLAN, PLAN, replace(current, topics=topics))
    assert len(found.problems) == 3
    assert "topic sightings-topic was deleted and made again" in found.problems[0].message


def test_a_recreated_input_needs_a_choice_about_its_state() -> None:
    """Together with where to begin, so that no lane starts without the second choice."""
    current, tolls_name = deployed(), FragmentName("tolls")
    topics = (replace(current.topics[0], topic_id="another"), *current.topics[1:])
    begins = ChangedInput(StreamName("sightings"), TopicName("sightings-topic"), True, ())
    kept = {name: replace(one, same_sources=False) for name, one in _states(PLAN).items()}
    current = replace(
        current,
        fragments=current.fragments[:1],
        topics=topics,
        states=kept,
        inputs={tolls_name: (begins,)},
    )
    inputs = {begins.stream: InputFrom.END}
    for chosen, refused in (({}, True), ({tolls_name: OnChange.EMPTY}, False)):
        choices = Choices(named=chosen, inputs=inputs)
        item = _item(changes(PLAN, PLAN, current, choices), "tolls")
        assert item.action is Action.RESTART
        assert ("its state does not fit" in item.refused) is refused
        assert ("`--state tolls=rebuild`" in item.hint) is refused


def test_a_state_with_a_pending_choice_needs_no_second_one() -> None:
    """An unchanged fragment may not have started yet; another one is chosen for meanwhile."""
    old = {name: replace(one, digest="1:other") for name, one in _states(PLAN).items()}
    choices = Choices(named={FragmentName("tow_dispatch"): OnChange.EMPTY})
    found = changes(PLAN, PLAN, replace(deployed(), states=old), choices)
    assert found.problems == ()
    assert _item(found, "tolls").action is Action.KEEP


def test_a_lost_topic_is_reported() -> None:
    """A topic of a fragment that is missing cannot be replaced by an empty one."""
    current = deployed()
    found = changes(PLAN, PLAN, replace(current, topics=current.topics[1:]))
    assert "topic sightings-topic is gone since fragment tolls" in found.problems[0].message


def test_a_lost_topic_is_created_again_where_nothing_ran() -> None:
    """Without a marker there are no positions that could be wrong."""
    current = deployed(ran=False)
    found = changes(PLAN, PLAN, replace(current, topics=current.topics[1:]))
    assert found.problems == ()
    assert [topic.name for topic in found.create_topics] == ["sightings-topic"]


def test_an_existing_topic_keeps_its_partitions_and_others_follow() -> None:
    """Another partition count is reported; dependent topics are created with it."""
    existing = (
        ExistingTopic(TopicName("sightings-topic"), 6),
        ExistingTopic(TopicName("toll_notifications-out"), 8),
    )
    found = changes(PLAN, None, Current(topics=existing))
    assert _item(found, "toll_notifications-out").action is Action.KEEP
    assert _item(found, "toll_notifications-out").reasons == (
        "has 8 partitions, the network says 4: kept as it is",
    )
    created = {topic.name: topic.partitions for topic in found.create_topics}
    assert created[TopicName("local.net.tolls.dlq")] == 6
    assert found.problems == ()
    there = {topic.name: topic.partitions for topic in existing}
    later = {topic.name: topic.partitions for topic in fitting(PLAN, there) if topic.when_needed}
    assert later == {
        "local.net.tolls.redrive": 6,
        "local.net.toll_notifications.redrive": 6,
        "local.net.tow_dispatch.redrive": 6,
    }


def test_topics_with_one_order_must_have_one_partition() -> None:
    """Markers over several partitions could not be read back in order."""
    existing = ExistingTopic(TopicName("local.net.tolls.markers"), 3)
    (problem,) = changes(PLAN, None, Current(topics=(existing,))).problems
    assert "local.net.tolls.markers has 3 partitions; it must have 1" in problem.message


def test_missing_topics_are_listed_where_none_may_be_created() -> None:
    """Each missing topic is named with all settings needed to create it."""
    closed = plan(replace(tolls(), auto_create=False), OWNER)
    existing = (ExistingTopic(TopicName("sightings-topic"), 4),)
    found = changes(closed, None, Current(topics=existing))
    assert found.create_topics == ()
    needed = [topic for topic in closed.topics if not topic.when_needed]
    assert len(found.missing_topics) == len(found.problems) == len(needed) - 1
    assert found.problems[1].message == (
        "topic local.net.tolls.boundaries does not exist, and auto_create is false: it needs "
        "1 partition, replication 1, cleanup.policy=compact "
        "message.timestamp.type=LogAppendTime segment.bytes=1048576"
    )


def test_a_missing_input_is_reported_with_similar_names() -> None:
    """It is created, and a topic with a similar name is named; our own topics never are."""
    names = ("local.net.tolls", "sightings-topic.dlq", "sighting-topic", "prices")
    found = changes(PLAN, None, Current(others=tuple(map(TopicName, names))))
    item = next(item for item in found.items if item.name == "sightings-topic")
    assert (item.action, item.reasons) == (
        Action.CREATE, ("4 partitions; an input that does not exist yet",)
    )  # fmt: skip
    assert found.warnings == (
        "input topic sightings-topic does not exist: did you mean sighting-topic?",
    )
    closed = plan(replace(tolls(), auto_create=False), OWNER)
    problems = changes(closed, None, Current(others=(TopicName("sighting-topic"),))).problems
    assert [p.hint for p in problems if "sightings-topic does" in p.message] == [
        "did you mean sighting-topic?"
    ]


def test_a_missing_input_without_a_similar_name_is_no_warning() -> None:
    """The topic of a new producer does not exist yet."""
    assert changes(PLAN, None, Current(others=(TopicName("prices"),))).warnings == ()


def test_other_topic_settings_are_reported_and_not_changed() -> None:
    """A new retention counts for new topics; it is a new version, and nothing restarts."""
    longer = plan(replace(tolls(), retention_ms=1), OWNER)
    found = changes(longer, PLAN, deployed())
    assert _item(found, "local.net.tolls").reasons == ("retention.ms 604800000 → 1: kept as it is",)
    assert {item.action for item in found.items} == {Action.KEEP}
    assert found.new_version


def test_incompatible_schema_is_refused_with_its_reasons() -> None:
    """A schema that the registry would refuse is refused before any change."""
    subject = Subject("local.net.tolls-value")
    bad = RegisteredSchema(subject, '"string"', ("at /toll: long, was string",))
    (problem,) = changes(PLAN, None, Current(schemas=(bad,))).problems
    assert "schema of local.net.tolls-value does not fit" in problem.message
    assert problem.details == ("at /toll: long, was string",)
    assert str(problem).splitlines()[1] == "    - at /toll: long, was string"


def test_compatible_schema_is_a_new_version() -> None:
    """A schema that differs and is compatible is registered."""
    fits = RegisteredSchema(Subject("local.net.tolls-value"), '"string"')
    found = changes(PLAN, None, Current(schemas=(fits,)))
    assert _item(found, "local.net.tolls-value").action is Action.CHANGE
    assert found.problems == ()


def test_unreadable_input_schema_is_refused() -> None:
    """A subject that is only read is reported when its records could not be read."""
    bad = RegisteredSchema(Subject("sightings-topic-value"), '"string"', ("not a record",))
    good = RegisteredSchema(Subject("other-value"), '"string"')
    found = changes(PLAN, None, Current(schemas=(bad, good)))
    (problem,) = found.problems
    assert "sightings-topic-value" in problem.message
    assert not any(item.name == "other-value" for item in found.items)


def test_layout_of_a_registered_schema_is_irrelevant() -> None:
    """A registry may store the same schema with other white space."""
    current = deployed()
    spread = tuple(
        replace(schema, schema_json=(schema.schema_json or "").replace(":", " : "))
        for schema in current.schemas
    )
    assert not changes(PLAN, PLAN, replace(current, schemas=spread)).pending


def test_renamed_box_is_one_fragment_less_and_one_more() -> None:
    """A fragment is identified by its name."""
    wanted = tolls()
    last = replace(wanted.boxes[-1], name=BoxName("dispatch"))  # type: ignore[type-var]  # a box
    renamed = replace(wanted, boxes=(*wanted.boxes[:-1], last), outputs=wanted.outputs[:1])
    found = changes(plan(renamed, OWNER), PLAN, deployed())
    assert _actions(found)[FragmentName("dispatch")] is Action.CREATE
    assert _actions(found)[FragmentName("tow_dispatch")] is Action.REMOVE
    assert found.items[3].kind is ItemKind.FRAGMENT
