"""What is seen of access control lists."""

import pytest

from brokers.kafka.errors import NoAccessListsError
from brokers.kafka.rights import KafkaRights
from brokers.kafka.servers import KafkaServers
from brokers.records import TopicRule
from pipeline.doctor.checks import exit_code, findings
from pipeline.doctor.facts import AccessSeen, Observed, Verdict
from pipeline.doctor.look import Look
from pipeline.errors import ExitCode, MedusaError, NotAllowedError, UnavailableError
from pipeline.settings import combine

RULE = TopicRule("out", False, "User:eve", "*", "WRITE", True)
Answer = tuple[TopicRule, ...] | MedusaError


class Rights(KafkaRights):
    """Answers what it was given."""

    def __init__(self, answer: Answer) -> None:
        self._told = answer

    def topic_rules(self) -> Answer:
        """That."""
        return self._told


@pytest.mark.parametrize(
    ("answer", "words", "code"),
    [
        ((RULE,), "1 rule about topics", ExitCode.DONE),
        ((), "0 rules about topics", ExitCode.DONE),
        (NoAccessListsError("none"), "none: whoever reaches", ExitCode.DONE),
        (NotAllowedError("no"), "that takes Describe on Cluster", ExitCode.DONE),
        (UnavailableError("nobody answers"), "nobody answers", ExitCode.UNAVAILABLE),
    ],
)
def test_access_lists_in_one_line(answer: Answer, words: str, code: ExitCode) -> None:
    """That there are none, or that we are not told, is not wrong: a lane runs all the same."""
    look = Look(combine(()), None)
    seen = look.access(KafkaServers("a:1"), lambda *_: Rights(answer))
    (found,) = findings(Observed(tuple(look.things)))
    assert words in found.message
    assert exit_code((found,)) is code
    assert (found.verdict is Verdict.GOOD) is (code is ExitCode.DONE)
    told = AccessSeen(answer, "User:ANONYMOUS") if isinstance(answer, tuple) else None
    assert seen == told
