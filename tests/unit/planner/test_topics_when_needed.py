"""Topics that a deploy neither creates nor requires."""

from dataclasses import replace

from pipeline.ids import TopicName
from pipeline.planner.changes import Action, Changes
from pipeline.planner.diff import changes
from tests.unit.planner.test_diff import PLAN, deployed, with_config


def _action(found: Changes, name: str) -> Action:
    return next(item.action for item in found.items if item.name == name)


def test_a_topic_that_is_not_needed_any_more_is_not_required() -> None:
    """The fragment has read another input before; users may delete its topic."""
    current = deployed()
    needless = (TopicName("left-behind"), "id of one that is gone")
    before = (
        replace(f, digest="1:other", topic_ids=(*f.topic_ids, needless)) for f in current.fragments
    )
    found = changes(PLAN, PLAN, replace(current, fragments=tuple(before)))
    assert found.problems == ()
    assert {item.action for item in found.fragments} == {Action.CHANGE}


def test_a_topic_created_on_demand_is_not_required_and_kept_where_it_exists() -> None:
    """A deploy neither creates nor reports it; where it exists, its settings have to fit."""
    redrive = TopicName("local.net.tolls.redrive")
    current = deployed()
    without = tuple(topic for topic in current.topics if topic.name != redrive)
    known = (
        replace(f, topic_ids=tuple(one for one in f.topic_ids if one[0] != redrive))
        for f in current.fragments
    )
    found = changes(PLAN, PLAN, replace(current, topics=without, fragments=tuple(known)))
    assert (found.problems, found.create_topics, found.pending) == ((), (), False)
    assert redrive not in {item.name for item in found.items}
    assert _action(changes(PLAN, PLAN, current), redrive) is Action.KEEP
    stamped = with_config(current, redrive, {"message.timestamp.type": "LogAppendTime"})
    (problem,) = changes(PLAN, PLAN, stamped).problems
    assert problem.message.startswith(f"topic {redrive} has message.timestamp.type=LogAppendTime")


def test_a_redrive_topic_that_existed_and_is_missing_is_reported() -> None:
    """The redriven records are lost, and so are the positions in them."""
    current = deployed()
    topics = tuple(topic for topic in current.topics if topic.name != "local.net.tolls.redrive")
    problems = changes(PLAN, PLAN, replace(current, topics=topics)).problems
    assert "topic local.net.tolls.redrive is gone since fragment tolls" in problems[0].message
