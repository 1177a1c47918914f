"""Pass: check that topic names are unique and valid.

The document was checked for this already, but without the boxes that the planner adds, whose
streams may have topics of their own. An output in the topic of an external stream would even feed
the network with its own results.
"""

import re
from collections import Counter

from pipeline.errors import DocumentError, Problem
from pipeline.ids import TopicName
from pipeline.planner.draft import Draft

MAX_TOPIC_NAME = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topics(draft: Draft) -> Draft:
    """The unchanged draft, if all its topics can exist.

    Raises:
        DocumentError: names every topic that is used twice or that Kafka would reject.
    """
    names = Counter(topic.name for topic in draft.topics)
    wrong = {name: problem for name in names if (problem := _problem(name, names)) is not None}
    problems = tuple(
        problem
        for name, problem in wrong.items()
        if not any(name.startswith(f"{other}.") for other in wrong)
    )
    if problems:
        raise DocumentError(problems)
    return draft


def _problem(name: str, names: Counter[TopicName]) -> Problem | None:
    """The problem with one topic among all of them."""
    if names[TopicName(name)] > 1:
        return Problem(
            f"topic {name} is used {names[TopicName(name)]} times by the network",
            hint="each output needs a topic of its own, other than those it reads.",
        )
    if len(name) > MAX_TOPIC_NAME or not _LEGAL.fullmatch(name) or name in {".", ".."}:
        return Problem(
            f"Kafka accepts no topic named {name}",
            hint=f"use letters, digits, '.', '_' and '-', at most {MAX_TOPIC_NAME} "
            "characters with what is added behind an output's topic.",
        )
    alike = [other for other in names if _same_metric(other, name)]
    if alike and alike[0] != name:
        return Problem(
            f"topics {alike[0]} and {name} differ only in '.' and '_', which Kafka refuses",
            hint="choose another topic for one of the outputs.",
        )
    return None


def _same_metric(one: str, other: str) -> bool:
    """Whether two names are equal in Kafka's metrics, which replace `.` by `_`."""
    return one.replace(".", "_") == other.replace(".", "_")
