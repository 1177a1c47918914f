from dataclasses import replace

from pipeline.ids import BoxName, FragmentName, NetworkVersion, Subject, TopicName
from pipeline.network.model import Box, Network
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
from pipeline.planner.diff import changes, wanted_schemas
from pipeline.planner.digest import fragment_digest, plan_digest
from pipeline.planner.plan import Plan
from pipeline.planner.planner import plan
from tests.unit.planner.networks import OWNER, filtered, tolls

PLAN = plan(tolls(), OWNER)


def _deployed(made: Plan = PLAN, *, ran: bool = True) -> Current:
    """Everything as the plan wants it."""
    topics = tuple(ExistingTopic(t.name, t.partitions, f"id of {t.name}") for t in made.topics)
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
        schemas=tuple(RegisteredSchema(s.subject, s.schema_json) for s in wanted_schemas(made)),
    )


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
    assert found.create_topics == PLAN.topics
    assert [text.subject for text in found.register] == [
        "net.tolls-value",
        "net.tolls-key",
        "toll_notifications-out-value",
        "tow_dispatch-out-value",
    ]
    assert found.pending
    assert found.problems == ()
    assert found.restarts == 0


def test_unchanged_deploy_does_nothing() -> None:
    """The same network again keeps every item and is no new version."""
    found = changes(PLAN, PLAN, _deployed())
    assert {item.action for item in found.items} == {Action.KEEP}
    assert not found.pending
    assert not found.new_version
    assert not found.create_topics
    assert not found.register
    assert not found.problems


def test_changed_box_changes_its_fragment_alone_and_says_why() -> None:
    """The reason shows the expression before and after; other fragments are kept."""
    found = changes(plan(_faster(), OWNER), PLAN, _deployed(ran=False))
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


def test_changed_fragment_that_has_run_is_refused() -> None:
    """Its positions and state belong to the old plan."""
    found = changes(plan(_faster(), OWNER), PLAN, _deployed())
    (problem,) = found.problems
    assert problem.box == "toll_notifications"
    assert "has run before; changing it needs state migration" in problem.message
    assert "deploy under another network name, or destroy" in problem.hint


def test_change_without_the_old_plan_is_still_a_change() -> None:
    """When the old document can no longer be planned, the digests still tell."""
    found = changes(plan(_faster(), OWNER), None, _deployed(ran=False))
    assert _item(found, "toll_notifications").reasons == (
        "its plan differs from the one that was deployed",
    )


def test_removed_fragment_is_removed_and_keeps_its_topics() -> None:
    """What is no longer in the network stops; what it wrote stays."""
    wanted = tolls()
    fewer = replace(wanted, boxes=wanted.boxes[:5], outputs=wanted.outputs[:1])
    found = changes(plan(fewer, OWNER), PLAN, _deployed())
    assert _actions(found) == {
        "tolls": Action.KEEP,
        "toll_notifications": Action.KEEP,
        "tow_dispatch": Action.REMOVE,
    }
    assert found.problems == ()
    assert found.summary == "restarts: 0 of 2 fragments"


def test_added_fragment_is_created_beside_the_others() -> None:
    """A new box is no reason to touch what runs."""
    wanted = tolls()
    more = replace(wanted, boxes=(*wanted.boxes, filtered("all", wanted.streams[0], "`at` > 0")))
    found = changes(plan(more, OWNER), PLAN, _deployed())
    assert _actions(found)["all"] is Action.CREATE
    assert set(list(_actions(found).values())[:3]) == {Action.KEEP}
    assert {topic.name for topic in found.create_topics} == {
        f"net.all{end}"
        for end in ("", ".boundaries", ".tentative", ".dlq", ".redrive", ".advances", ".markers")
    }


def test_fragment_that_comes_back_with_its_old_markers_is_refused() -> None:
    """Nobody knows with which plan it ran."""
    current = _deployed()
    forgotten = replace(current, fragments=current.fragments[:2])
    (problem,) = changes(PLAN, PLAN, forgotten).problems
    assert problem.box == "tow_dispatch"
    assert "has run before" in problem.message


def test_stopped_fragment_is_started_again() -> None:
    """Deploying after an undeploy goes on where it stopped."""
    current = _deployed()
    stopped = tuple(replace(fragment, running=False) for fragment in current.fragments)
    found = changes(PLAN, PLAN, replace(current, fragments=stopped))
    assert set(_actions(found).values()) == {Action.RESTART}
    assert found.pending
    assert found.problems == ()


def test_recreated_topic_is_noticed() -> None:
    """A topic of the same name with another id holds other records."""
    current = _deployed()
    topics = (replace(current.topics[0], topic_id="another"), *current.topics[1:])
    found = changes(PLAN, PLAN, replace(current, topics=topics))
    assert len(found.problems) == 3
    assert "topic sightings-topic was deleted and made again" in found.problems[0].message


def test_lost_topic_is_noticed() -> None:
    """A topic that a fragment knew and that is gone cannot be replaced by an empty one."""
    current = _deployed()
    found = changes(PLAN, PLAN, replace(current, topics=current.topics[1:]))
    assert "topic sightings-topic is gone since fragment tolls" in found.problems[0].message


def test_lost_topic_is_made_again_where_nothing_ran() -> None:
    """Without a marker there are no positions that could be wrong."""
    current = _deployed(ran=False)
    found = changes(PLAN, PLAN, replace(current, topics=current.topics[1:]))
    assert found.problems == ()
    assert [topic.name for topic in found.create_topics] == ["sightings-topic"]


def test_existing_topic_keeps_its_partitions_and_others_follow() -> None:
    """Another partition count is said; what belongs to the topic is created to fit it."""
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
    assert created[TopicName("toll_notifications-out.tentative")] == 8
    assert created[TopicName("tow_dispatch-out.tentative")] == 4
    assert created[TopicName("net.tolls.dlq")] == 6
    assert created[TopicName("net.toll_notifications.redrive")] == 6
    assert found.problems == ()


def test_topics_with_one_order_must_have_one_partition() -> None:
    """Markers over several partitions could not be read back in order."""
    existing = ExistingTopic(TopicName("net.tolls.markers"), 3)
    (problem,) = changes(PLAN, None, Current(topics=(existing,))).problems
    assert "net.tolls.markers has 3 partitions; it must have 1" in problem.message


def test_missing_topics_are_listed_where_none_may_be_created() -> None:
    """Each missing topic is named with everything that somebody needs to create it."""
    closed = plan(replace(tolls(), auto_create=False), OWNER)
    existing = (ExistingTopic(TopicName("sightings-topic"), 4),)
    found = changes(closed, None, Current(topics=existing))
    assert found.create_topics == ()
    assert len(found.missing_topics) == len(found.problems) == len(closed.topics) - 1
    assert found.problems[1].message == (
        "topic net.tolls.boundaries does not exist, and auto_create is false: it needs "
        "1 partition, replication 1, cleanup.policy=compact segment.bytes=1048576"
    )


def test_other_topic_settings_are_said_and_not_changed() -> None:
    """A new retention counts for new topics; it is a new version, and nothing restarts."""
    longer = plan(replace(tolls(), retention_ms=1), OWNER)
    found = changes(longer, PLAN, _deployed())
    assert _item(found, "net.tolls").reasons == ("retention.ms 604800000 → 1: kept as it is",)
    assert {item.action for item in found.items} == {Action.KEEP}
    assert found.new_version


def test_incompatible_schema_is_refused_with_its_reasons() -> None:
    """What the registry would refuse is refused before anything is done."""
    subject = Subject("net.tolls-value")
    bad = RegisteredSchema(subject, '"string"', ("at /toll: long, was string",))
    (problem,) = changes(PLAN, None, Current(schemas=(bad,))).problems
    assert "schema of net.tolls-value does not fit" in problem.message
    assert problem.details == ("at /toll: long, was string",)
    assert str(problem).splitlines()[1] == "    - at /toll: long, was string"


def test_compatible_schema_is_a_new_version() -> None:
    """A schema that differs and fits is registered."""
    fits = RegisteredSchema(Subject("net.tolls-value"), '"string"')
    found = changes(PLAN, None, Current(schemas=(fits,)))
    assert _item(found, "net.tolls-value").action is Action.CHANGE
    assert found.problems == ()


def test_unreadable_input_schema_is_refused() -> None:
    """A subject that the plan only reads appears when its records could not be read."""
    bad = RegisteredSchema(Subject("sightings-topic-value"), '"string"', ("not a record",))
    good = RegisteredSchema(Subject("other-value"), '"string"')
    found = changes(PLAN, None, Current(schemas=(bad, good)))
    (problem,) = found.problems
    assert "sightings-topic-value" in problem.message
    assert not any(item.name == "other-value" for item in found.items)


def test_layout_of_a_registered_schema_does_not_matter() -> None:
    """A registry may store the same schema with other white space."""
    current = _deployed()
    spread = tuple(
        replace(schema, schema_json=(schema.schema_json or "").replace(":", " : "))
        for schema in current.schemas
    )
    assert not changes(PLAN, PLAN, replace(current, schemas=spread)).pending


def test_renamed_box_is_one_fragment_less_and_one_more() -> None:
    """A fragment is known by its name."""
    wanted = tolls()
    last = replace(wanted.boxes[-1], name=BoxName("dispatch"))  # type: ignore[type-var]  # a box
    renamed = replace(wanted, boxes=(*wanted.boxes[:-1], last), outputs=wanted.outputs[:1])
    found = changes(plan(renamed, OWNER), PLAN, _deployed())
    assert _actions(found)[FragmentName("dispatch")] is Action.CREATE
    assert _actions(found)[FragmentName("tow_dispatch")] is Action.REMOVE
    assert found.items[3].kind is ItemKind.FRAGMENT
