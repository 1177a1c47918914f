from collections.abc import Mapping
from dataclasses import replace

import pytest

from pipeline.ids import TopicName
from pipeline.planner.diff import changes
from pipeline.planner.existing_topics import Misfit, misfits
from pipeline.planner.plan import NewTopic
from pipeline.planner.planner import plan
from tests.unit.planner.networks import OWNER, tolls
from tests.unit.planner.test_diff import PLAN, deployed, with_config

TOPICS = {str(topic.name): topic for topic in plan(tolls(), OWNER).topics}
KEPT_BY_NEED = replace(tolls(), trims_internal=True)
OUTPUT = "local.net.tolls"
LETTERS, REDRIVE = "local.net.tolls.dlq", "local.net.tolls.redrive"
MARKERS, BOUNDARIES, INPUT = (
    "local.net.tolls.markers",
    "local.net.tolls.boundaries",
    "sightings-topic",
)
TYPE, POLICY = "message.timestamp.type", "cleanup.policy"


def of(topic: NewTopic, **changed: str) -> list[Misfit]:
    """The differences of a topic from the plan's, with some other settings."""
    settings = {name.replace("_", "."): value for name, value in changed.items()}
    return list(misfits(topic, {**dict(topic.config), **settings}))


def test_a_topic_that_is_kept_by_need_has_no_limit() -> None:
    """Kafka would remove what a reader still needs."""
    by_need = {topic.name: topic for topic in plan(KEPT_BY_NEED, OWNER).topics}[TopicName(OUTPUT)]
    for setting in ("retention_ms", "retention_bytes"):
        (found,) = of(by_need, **{setting: "604800000"})
        assert found.fatal
        assert "a fragment may need its records however old they are" in found.message
        assert f"--add-config {setting.replace('_', '.')}=-1" in found.hint


def test_topics_as_created_fit() -> None:
    """Nor is anything reported of settings that could not be read."""
    assert [one for topic in TOPICS.values() for one in of(topic)] == []
    assert [one for topic in TOPICS.values() for one in misfits(topic, {})] == []


@pytest.mark.parametrize(
    ("name", "config", "fatal"),
    [
        (OUTPUT, {TYPE: "LogAppendTime"}, True),
        (REDRIVE, {TYPE: "LogAppendTime"}, True),
        (INPUT, {TYPE: "LogAppendTime"}, None),
        (LETTERS, {TYPE: "CreateTime"}, True),
        (MARKERS, {TYPE: "CreateTime"}, True),
        (BOUNDARIES, {TYPE: "CreateTime"}, True),
        (MARKERS, {POLICY: "delete"}, True),
        (MARKERS, {POLICY: "compact,delete"}, True),
        (BOUNDARIES, {POLICY: "delete"}, True),
        (OUTPUT, {POLICY: "compact"}, True),
        (LETTERS, {POLICY: "compact,delete"}, True),
        (REDRIVE, {POLICY: "compact"}, True),
        (INPUT, {POLICY: "compact"}, False),
        (LETTERS, {"retention.ms": "604800000"}, True),
        (LETTERS, {"retention.bytes": "1000000"}, True),
        (REDRIVE, {"retention.bytes": "1000000"}, True),
        (REDRIVE, {"retention.ms": "1000"}, None),
        (OUTPUT, {"retention.ms": "1000"}, None),
        (MARKERS, {"retention.ms": "1000"}, None),
        (MARKERS, {"min.compaction.lag.ms": "0"}, False),
        (MARKERS, {"min.compaction.lag.ms": "599999"}, False),
        (MARKERS, {"min.compaction.lag.ms": "3600000"}, None),
        (BOUNDARIES, {"min.compaction.lag.ms": "0"}, None),
    ],
)
def test_settings_that_lose_records_or_change_results(
    *, name: str, config: Mapping[str, str], fatal: bool | None
) -> None:
    """Whether a deploy is refused, warns (False) or reports nothing (None)."""
    found = of(TOPICS[name], **{k.replace(".", "_"): v for k, v in config.items()})
    assert [one.fatal for one in found] == ([] if fatal is None else [fatal])
    for one in found:
        ((setting, value),) = config.items()
        assert f"topic {name} has {setting}={value}, the network needs " in one.message
        assert f"--entity-name {name} --add-config {setting}=" in one.hint


def test_a_deploy_onto_a_topic_with_other_timestamps_is_refused() -> None:
    """With LogAppendTime none of the windows behind it would be right."""
    current = with_config(deployed(), OUTPUT, {TYPE: "LogAppendTime"})
    (problem,) = changes(PLAN, PLAN, current).problems
    assert f"topic {OUTPUT} has {TYPE}=LogAppendTime, the network needs CreateTime" in str(problem)
    assert f"--add-config {TYPE}=CreateTime" in problem.hint


def test_all_problems_of_a_topic_are_reported_at_once() -> None:
    """The first with the hint, the others as details."""
    wrong = {POLICY: "delete", TYPE: "CreateTime"}
    current = with_config(deployed(), MARKERS, wrong)
    (problem,) = changes(PLAN, PLAN, current).problems
    assert f"{POLICY}=delete, the network needs compact" in problem.message
    (further,) = problem.details
    assert f"--add-config {TYPE}=LogAppendTime" in further


def test_a_compacted_input_is_a_warning() -> None:
    """It is not ours."""
    found = changes(PLAN, PLAN, with_config(deployed(), INPUT, {POLICY: "compact"}))
    assert found.problems == ()
    (warning,) = found.warnings
    assert warning.startswith(f"topic {INPUT} has {POLICY}=compact")
