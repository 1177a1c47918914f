"""Pass: no two streams may end up in one topic, and Kafka must accept every name.

A document can name the topics of its streams and outputs freely, so two of them, or one of them and
a topic that belongs to a fragment, may turn out the same. An output that goes into the topic of an
external stream would even feed the network with its own results.
"""

import re
from collections import Counter

from pipeline.errors import DocumentError, Problem
from pipeline.planner.draft import Draft

MAX_TOPIC_NAME = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topics(draft: Draft) -> Draft:
    """The same draft, unless its topics cannot all exist.

    Raises:
        DocumentError: names every topic that is wanted twice or that Kafka would refuse.
    """
    problems: list[Problem] = []
    names = [topic.name for topic in draft.topics]
    for name, count in Counter(names).items():
        if count > 1:
            problems.append(
                Problem(
                    f"topic {name} is used {count} times by the network",
                    hint="each output needs a topic of its own, other than those it reads.",
                )
            )
        elif len(name) > MAX_TOPIC_NAME or not _LEGAL.fullmatch(name) or name in {".", ".."}:
            problems.append(
                Problem(
                    f"Kafka accepts no topic named {name}",
                    hint=f"use letters, digits, '.', '_' and '-', at most {MAX_TOPIC_NAME} "
                    "characters with what is added behind an output's topic.",
                )
            )
    by_metric_name: dict[str, str] = {}
    for name in dict.fromkeys(names):
        other = by_metric_name.setdefault(name.replace(".", "_"), name)
        if other != name:
            problems.append(
                Problem(
                    f"topics {other} and {name} differ only in '.' and '_', which Kafka refuses",
                    hint="choose another topic for one of the outputs.",
                )
            )
    if problems:
        raise DocumentError(tuple(problems))
    return draft
