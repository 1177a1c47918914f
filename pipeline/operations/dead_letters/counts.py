"""Dead letters counted by fragment and reason, with the limits of their topics."""

from collections.abc import Container
from dataclasses import dataclass

from pipeline.dead_letters.choose import Summary, summary
from pipeline.dead_letters.letter import Identity
from pipeline.errors import RefusedError
from pipeline.operations.connections import Connections
from pipeline.operations.dead_letters.letters import letters_of, redrive_topic, sent_again
from pipeline.operations.fragments import fragments_of
from pipeline.operations.networks import own_plans
from pipeline.planner.plan import Fragment, Plan


@dataclass(frozen=True, slots=True)
class FragmentLetters:
    """The dead letters of one fragment.

    Args:
        fragment: the fragment.
        summary: counts by reason, and the oldest and newest append times.
        redriven: number that were sent again; None: unknown, since the redrive topic is gone.
        retention_ms: retention of dead letters that no rebuild needs.
        retention_bytes: the limit of a partition of their topic; None: unlimited.
        max_message_bytes: the largest record that their topic accepts; None: unlimited.
    """

    fragment: Fragment
    summary: Summary
    redriven: int | None
    retention_ms: int
    retention_bytes: int | None
    max_message_bytes: int | None


@dataclass(frozen=True, slots=True)
class LetterCounts:
    """The dead letters of several fragments; `problems`: why `redriven` of one is unknown."""

    fragments: tuple[FragmentLetters, ...]
    problems: tuple[RefusedError, ...]


def count_letters(name: str, connections: Connections) -> LetterCounts:
    """Count the dead letters of the fragments that match a name; "" is all.

    Raises:
        RefusedError: no fragment has the name, or it matches a single one whose redrive
            topic is gone.
        UnavailableError, RetryError: a server does not answer, or a topic was not read to its end.
    """
    plans = {plan.network: plan for plan in own_plans(connections)}
    fragments, problems, found = fragments_of(name, connections), [], []
    for fragment in fragments:
        plan, sent = plans[fragment.names.network], None
        try:
            sent = sent_again(redrive_topic(plan, fragment, connections), connections)
        except RefusedError as error:
            if len(fragments) == 1:
                raise
            problems.append(error)  # no reason to leave out the other fragments
        found.append(_counts(fragment, plan, sent, connections))
    return LetterCounts(tuple(found), tuple(problems))


def _counts(
    fragment: Fragment, plan: Plan, sent: Container[Identity] | None, connections: Connections
) -> FragmentLetters:
    topic = fragment.names.dead_letters
    counted = summary(letters_of(fragment, connections), () if sent is None else sent)
    config = connections.topics.topic_configs([topic]).get(topic, {})
    return FragmentLetters(
        fragment,
        counted,
        None if sent is None else counted.redriven,
        plan.retention_ms,
        _limit(config.get("retention.bytes")),
        _limit(config.get("max.message.bytes")),
    )


def _limit(setting: str | None) -> int | None:
    return None if setting is None or int(setting) < 0 else int(setting)
