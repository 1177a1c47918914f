import json
from dataclasses import replace

from pipeline.ids import NetworkVersion
from pipeline.planner.changes import Current, DeployedFragment, ExistingTopic
from pipeline.planner.diff import changes, required_schemas
from pipeline.planner.digest import fragment_digest, plan_digest
from pipeline.planner.planner import plan
from pipeline.planner.render import changes_as_data, render_changes
from tests.unit.planner.networks import OWNER, external, filtered, network

SOURCE = external("s")
OLD = plan(network((SOURCE,), (filtered("f", SOURCE, "`at` > 0"),), ("f",)), OWNER)
NEW = plan(network((SOURCE,), (filtered("f", SOURCE, "`at` > 1"),), ("f",)), OWNER)
DEPLOYED = Current(
    version=NetworkVersion(2),
    digest=plan_digest(OLD),
    fragments=(
        DeployedFragment(OLD.fragments[0].name, fragment_digest(OLD.fragments[0]), running=True),
    ),
    topics=tuple(ExistingTopic(topic.name, topic.partitions) for topic in OLD.topics),
)


def test_text_of_a_change() -> None:
    """New, changed and refused items have their marks; kept ones are only counted."""
    ran = replace(DEPLOYED, has_run=frozenset({OLD.fragments[0].name}))
    assert render_changes(changes(NEW, OLD, ran)) == (
        "network net: version 2\n"
        "fragments (1 change)\n"
        "  ~ f  change   changed: where of f `at > 0` → `at > 1`\n"
        "                it goes on at its positions: nothing is lost or repeated\n"
        "topics (6 keep)\n"
        "schemas (1 create)\n"
        "  + f-out-value  create   the first version\n"
        "restarts: 1 of 1 fragment\n"
    )


def test_text_of_no_change() -> None:
    """An unchanged network is reported as such."""
    schemas = required_schemas(OLD)
    from_registry = changes(OLD, OLD, DEPLOYED)
    assert from_registry.register == schemas
    kept = replace(from_registry, items=from_registry.items[:-1], register=())
    assert render_changes(kept).endswith("restarts: 0 of 1 fragment\nnothing to do\n")


def test_data_is_json_with_stable_keys() -> None:
    """The same as the text, with snake_case keys."""
    data = changes_as_data(changes(NEW, OLD, replace(DEPLOYED, topics=())))
    assert json.loads(json.dumps(data)) == data
    assert list(data) == [
        "format_version",
        "network",
        "deployed_version",
        "pending",
        "refused",
        "restarts",
        "summary",
        "fragments",
        "topics",
        "schemas",
        "create_topics",
        "missing_topics",
        "problems",
        "warnings",
        "inputs",
        "arrows",
    ]
    assert data["fragments"] == [
        {
            "name": "f",
            "action": "change",
            "reasons": ["changed: where of f `at > 0` → `at > 1`"],
            "refused": None,
            "hint": None,
            "details": [],
            "state": None,
            "moves_from": None,
        }
    ]
    assert data["pending"] is True
    assert data["refused"] is False
