"""`medusa explain`: the plan of a network document in words."""

from collections.abc import Mapping

import click

from pipeline.cli.options import document_options, with_session
from pipeline.cli.session import Session
from pipeline.cli.takeover_view import measured_lines, takeover_data
from pipeline.cli.tentative_view import waits_data, waits_text
from pipeline.deploy.documents import plan_document, read_document
from pipeline.ids import FragmentName
from pipeline.operations.status.takeover import Measured
from pipeline.operations.status.takeover_search import measured_of
from pipeline.planner import explain
from pipeline.planner.digest import fragment_digest
from pipeline.planner.failures import node_failures, planned_failures
from pipeline.planner.plan import Fragment, Plan
from schemas.json_value import JsonObject

_NOT_DEPLOYED = "nothing: it is not deployed"


@click.command("explain")
@document_options
@click.option(
    "--measured",
    is_flag=True,
    help="Add what was measured of the deployed network of that name: needs its servers.",
)
@with_session
def command(session: Session, file: str | None, *, measured: bool) -> None:
    """Print how a network would run: its fragments, topics, groups, state and guarantees.

    Needs no server. The text is the same for the same document. With --measured each fragment also
    has what a takeover would cost now, the size of its state if that is known, how long its last
    takeover and its last start took, by parts, and how long its results usually wait for input.

    \b
    Examples:
      medusa explain
      medusa explain other.yaml > explain.txt
      medusa explain --measured
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    document = read_document(session.project.document(file), session.read_subject)
    plan = plan_document(document, session.participant)
    found = _measured(session, plan) if measured else None
    data = _as_data(plan)
    if found is not None:
        for one, part in zip(plan.fragments, data, strict=True):
            part["measured"] = _measured_data(found.get(one.name))
    lines = {} if found is None else _measured_text(session, plan, found)
    session.printer.show(
        {
            "network": plan.network.name,
            "owner": plan.network.participant,
            "notes": list(plan.notes),
            "fragments": list(data),
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
        explain.explain(plan, lines).rstrip("\n"),
    )


def _as_data(plan: Plan) -> list[JsonObject]:
    return [
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
            "availability": _availability(fragment),
            "ids": fragment.identified,
        }
        for fragment in plan.fragments
    ]


def _availability(fragment: Fragment) -> JsonObject | None:
    """Its bound, and the topic of its tentative results, if it may have some."""
    bound = fragment.availability
    if bound is None:
        return None
    return {
        "bound_ms": bound.bound_ms,
        "policy": bound.policy.value,
        "tentative": fragment.tentative_topic,
    }


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


def _measured(session: Session, plan: Plan) -> Mapping[FragmentName, Measured]:
    stateful = {one.name: one.stateful_box is not None for one in plan.fragments}
    with session.connect() as connections:
        return measured_of(plan.network, stateful, connections)


def _measured_text(
    session: Session, plan: Plan, found: Mapping[FragmentName, Measured]
) -> explain.Measured:
    now_ms = session.clock.now_ms()
    return {
        one.name: (
            (
                *_other(one, measured),
                *measured_lines(measured.takeover, now_ms),
                *(() if measured.waits is None else (waits_text(measured.waits),)),
            )
            if (measured := found.get(one.name)) is not None
            else (_NOT_DEPLOYED,)
        )
        for one in plan.fragments
    }


def _other(fragment: Fragment, measured: Measured) -> tuple[str, ...]:
    """That something else is deployed than this document says, if it is so."""
    if measured.digest == fragment_digest(fragment) and (
        measured.reliability == fragment.reliability
    ):
        return ()
    version = measured.version
    return (f"of version {version}, which is another one: {measured.reliability}",)


def _measured_data(measured: Measured | None) -> JsonObject | None:
    if measured is None:
        return None
    return {
        "version": measured.version,
        "digest": measured.digest,
        "reliability": str(measured.reliability),
        "takeover": takeover_data(measured.takeover),
        "waits": waits_data(measured.waits),
    }
