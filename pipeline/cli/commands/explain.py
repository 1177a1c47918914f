"""`medusa explain`: the plan of a network document in words."""

import click

from pipeline.cli.options import document_options, with_session
from pipeline.cli.session import Session
from pipeline.deploy.documents import read_document
from pipeline.planner import explain, planner
from pipeline.planner.digest import fragment_digest
from pipeline.planner.failures import node_failures, planned_failures
from pipeline.planner.plan import Fragment, Plan
from schemas.json_value import JsonObject


@click.command("explain")
@document_options
@with_session
def command(session: Session, file: str | None) -> None:
    """Print how a network would run: its fragments, topics, groups, state and guarantees.

    Needs no server. The text is the same for the same document.

    \b
    Examples:
      medusa explain
      medusa explain other.yaml > explain.txt
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    document = read_document(session.project.document(file), session.read_subject)
    plan = planner.plan(document.network, session.participant)
    session.printer.show(
        {
            "network": plan.network.name,
            "owner": plan.network.participant,
            "notes": list(plan.notes),
            "fragments": [
                {
                    "name": fragment.name,
                    "digest": fragment_digest(fragment),
                    "boxes": [box.name for box in fragment.boxes],
                    "inputs": [stream.topic for stream in fragment.inputs],
                    "output": fragment.output.topic,
                    "stateful": fragment.stateful_box is not None,
                    "group": fragment.names.group,
                    "pace_ms": fragment.pace_ms,
                    "state_limit_bytes": fragment.state_limit_bytes,
                    "reliability": fragment.reliability.mode.value,
                    "secondaries": fragment.reliability.secondaries,
                    "checkpoint_every_ms": fragment.reliability.checkpoint_every_ms,
                    "recovery": fragment.recovery.value,
                    "nodes_may_fail": node_failures(fragment),
                    "brokers_may_fail": _brokers(fragment, plan),
                    "priority": fragment.priority.value,
                }
                for fragment in plan.fragments
            ],
            "topics": [
                {
                    "name": topic.name,
                    "partitions": topic.partitions,
                    "replication": topic.replication,
                    "config": dict(topic.config),
                    "external": topic.external,
                    "when_needed": topic.when_needed,
                }
                for topic in plan.topics
            ],
        },
        explain.explain(plan).rstrip("\n"),
    )


def _brokers(fragment: Fragment, plan: Plan) -> JsonObject | None:
    """How many brokers may fail at once, if the topics are as they are planned."""
    found = planned_failures(fragment, plan)
    if found is None:
        return None
    return {
        "without_loss": found.without_loss,
        "without_pause": found.without_pause,
        "weakest": list(found.weakest),
    }
