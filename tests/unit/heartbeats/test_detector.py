"""Which nodes are suspected, for logs of heartbeats."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.heartbeats.detector import (
    AGENT_MS,
    CALM_MS,
    DOUBLED_MAX,
    FORGOTTEN_MS,
    OUTAGE_MS,
    RECOVERY_MS,
    STEPS,
    SUSPECTED_MOST_MS,
    Detector,
    Suspect,
    Why,
)
from pipeline.heartbeats.heartbeat import INTERVAL_MS, Heartbeat
from pipeline.ids import Millis, NodeId, SteadyMillis

OWN, OTHER = NodeId("own"), NodeId("other")
LIFE, EARLIER, LATER = Millis(50), Millis(40), Millis(60)
LIMIT_MS = 1_000
GONE = Suspect(OTHER, LIFE)


@dataclass
class Log:
    """A log that is read as it is written, and the clock of the node that reads it."""

    detector: Detector = field(default_factory=lambda: Detector(OWN, LIFE, LIMIT_MS))
    now_ms: int = 1_000_000

    def own(self, sent_ms: int | None = None) -> None:
        """An own heartbeat; without a time, sent now."""
        sent = SteadyMillis(self.now_ms if sent_ms is None else sent_ms)
        self.detector.take(Heartbeat(OWN, LIFE, 1, sent, 0), SteadyMillis(self.now_ms))

    def other(
        self,
        life: Millis = LIFE,
        agent_ms: int = 0,
        *,
        ended: bool = False,
        node: NodeId = OTHER,
    ) -> None:
        """A heartbeat of another node, by its own clock."""
        heartbeat = Heartbeat(node, life, 1, SteadyMillis(3), agent_ms, ended)
        self.detector.take(heartbeat, SteadyMillis(self.now_ms))

    def run(self, span_ms: int, *between: Callable[[], None]) -> None:
        """So much time with own heartbeats, and perhaps others before each."""
        for _ in range(span_ms // INTERVAL_MS):
            self.now_ms += INTERVAL_MS
            for one in between:
                one()
            self.own()

    def suspected(self) -> dict[Suspect, Why]:
        """Suspected nodes now."""
        found = self.detector.suspicions(SteadyMillis(self.now_ms))
        return {suspect: one.why for suspect, one in found.items()}

    def until_suspected(self) -> int:
        """Own heartbeats until the other node is suspected: how long that took."""
        began_ms = self.now_ms
        while GONE not in self.suspected():
            assert self.now_ms - began_ms < 100 * LIMIT_MS
            self.run(INTERVAL_MS)
        return self.now_ms - began_ms


@pytest.fixture
def log() -> Log:
    """A log in which both nodes have sent heartbeats for a second."""
    found = Log()
    found.run(1_000, found.other)
    return found


def test_a_node_that_sends_is_not_suspected(log: Log) -> None:
    """However long."""
    log.run(60_000, log.other)
    assert not log.suspected()


def test_a_silent_node_is_suspected_after_the_limit(log: Log) -> None:
    """By the own heartbeats that follow its last one; its facts are those of the silence."""
    log.run(LIMIT_MS)
    log.run(INTERVAL_MS)
    assert log.suspected() == {GONE: Why.SILENT}
    suspicion = log.detector.suspicions(SteadyMillis(log.now_ms))[GONE]
    assert LIMIT_MS <= suspicion.for_ms <= LIMIT_MS + INTERVAL_MS
    assert (suspicion.limit_ms, suspicion.false) == (LIMIT_MS, 0)
    assert suspicion.sign_ms == log.now_ms - LIMIT_MS - INTERVAL_MS


def test_a_silent_node_is_not_suspected_before_the_limit(log: Log) -> None:
    """One own heartbeat less."""
    log.run(LIMIT_MS - INTERVAL_MS)
    assert not log.suspected()


def test_nobody_is_suspected_without_own_heartbeats(log: Log) -> None:
    """Time alone says nothing: Kafka may be away, or this node."""
    log.now_ms += 60_000
    assert not log.suspected()


def test_a_suspicion_rests_while_own_heartbeats_are_old(log: Log) -> None:
    """It comes back with the next own heartbeat, if the node is still silent."""
    log.run(2 * LIMIT_MS)
    assert log.suspected()
    log.now_ms += LIMIT_MS
    assert log.detector.blind(SteadyMillis(log.now_ms))
    assert not log.suspected()
    log.own()
    assert log.suspected() == {GONE: Why.SILENT}


def test_own_heartbeats_that_are_always_old_suspect_nobody(log: Log) -> None:
    """Kafka is slow for all."""
    for _ in range(100):
        log.now_ms += INTERVAL_MS
        log.own(log.now_ms - LIMIT_MS)
        assert not log.suspected()


def test_a_burst_of_own_heartbeats_suspects_nobody(log: Log) -> None:
    """They were sent while Kafka was away, and are read at one moment."""
    sent_ms = log.now_ms
    log.now_ms += OUTAGE_MS
    for late_ms in range(0, OUTAGE_MS + 1, 10):
        log.own(sent_ms + late_ms)
    assert not log.suspected()
    assert log.until_suspected() >= LIMIT_MS - LIMIT_MS // STEPS


def test_after_an_outage_others_have_time_to_connect(log: Log) -> None:
    """Own heartbeats come first, those of the other node two seconds later."""
    log.now_ms += 10_000
    log.run(RECOVERY_MS)
    assert not log.suspected()
    log.run(5_000, log.other)
    assert not log.suspected()


def test_a_node_that_does_not_come_back_after_an_outage_is_suspected(log: Log) -> None:
    """After the limit and the time for others to connect."""
    log.now_ms += 10_000
    assert LIMIT_MS + RECOVERY_MS <= log.until_suspected() <= LIMIT_MS + RECOVERY_MS + 200


def test_a_delay_of_own_heartbeats_counts_in_part(log: Log) -> None:
    """Five own heartbeats at least follow the last one of a suspected node."""
    for _ in range(STEPS - 1):
        log.now_ms += OUTAGE_MS
        log.own()
        assert not log.suspected()
    log.now_ms += OUTAGE_MS
    log.own()
    assert log.suspected()


def test_a_process_that_has_ended_is_suspected_at_once(log: Log) -> None:
    """A later heartbeat of that life changes nothing: it is late."""
    log.other(ended=True)
    assert log.suspected() == {GONE: Why.ENDED}
    log.run(1_000, log.other)
    assert log.suspected() == {GONE: Why.ENDED}


def test_an_end_is_news_also_of_an_unknown_node() -> None:
    """This node has just begun to read."""
    log = Log()
    log.other(ended=True)
    assert not log.suspected()
    log.own()
    assert log.suspected() == {GONE: Why.ENDED}


@pytest.mark.parametrize("ended", [True, False])
def test_a_later_life_ends_the_suspicion_of_the_earlier_one(log: Log, *, ended: bool) -> None:
    """A heartbeat of the earlier life after that changes nothing."""
    if ended:
        log.other(ended=True)
    log.run(2 * LIMIT_MS)
    assert log.suspected()
    log.other(LATER)
    assert not log.suspected()
    log.other(ended=True)
    log.other(EARLIER, ended=True)
    assert not log.suspected()
    log.run(2 * LIMIT_MS)
    assert log.suspected() == {Suspect(OTHER, LATER): Why.SILENT}
    assert log.detector.suspicions(SteadyMillis(log.now_ms))[Suspect(OTHER, LATER)].false == 0


def test_an_agent_that_hangs_is_suspected(log: Log) -> None:
    """Its process sends; the end of that is no false suspicion."""
    log.run(1_000, lambda: log.other(agent_ms=AGENT_MS))
    assert not log.suspected()
    log.run(100, lambda: log.other(agent_ms=AGENT_MS + 1))
    assert log.suspected() == {GONE: Why.HANGING}
    found = log.detector.suspicions(SteadyMillis(log.now_ms))[GONE]
    assert log.now_ms - found.sign_ms == found.for_ms
    log.run(100, log.other)
    assert not log.suspected()
    log.run(2 * LIMIT_MS)
    assert log.detector.suspicions(SteadyMillis(log.now_ms))[GONE].false == 0


def test_each_false_suspicion_doubles_the_limit(log: Log) -> None:
    """Up to sixteen times."""
    for number in range(DOUBLED_MAX + 3):
        limit_ms = LIMIT_MS << min(number, DOUBLED_MAX)
        assert limit_ms <= log.until_suspected() <= limit_ms + 2 * INTERVAL_MS
        assert log.detector.suspicions(SteadyMillis(log.now_ms))[GONE].false == number
        log.run(200, log.other)
        assert not log.suspected()


def test_a_calm_time_halves_the_limit_again(log: Log) -> None:
    """Each ten minutes, once."""
    for _ in range(2):
        log.until_suspected()
        log.run(200, log.other)
    log.run(CALM_MS, log.other)
    assert 2 * LIMIT_MS <= log.until_suspected() <= 2 * LIMIT_MS + 2 * INTERVAL_MS


def test_a_silence_that_nobody_was_told_of_is_no_false_suspicion(log: Log) -> None:
    """Both were read together: the node came back before it was judged."""
    log.run(2 * LIMIT_MS)
    log.run(200, log.other)
    assert LIMIT_MS <= log.until_suspected() <= LIMIT_MS + 2 * INTERVAL_MS


def test_a_node_that_is_gone_is_forgotten(log: Log) -> None:
    """It would be a suspect for ever. Before a day has passed it may only be cut off from Kafka."""
    log.other(ended=True)
    log.run(FORGOTTEN_MS + INTERVAL_MS)
    assert log.suspected()
    log.now_ms += SUSPECTED_MOST_MS
    log.own()
    log.run(INTERVAL_MS)
    assert not log.suspected()


@pytest.mark.parametrize("life", [LIFE, EARLIER, LATER])
def test_a_node_never_suspects_itself(log: Log, life: Millis) -> None:
    """Whatever is read of its name."""
    log.run(1_000, log.other, lambda: log.other(life, AGENT_MS + 1, ended=True, node=OWN))
    assert not log.suspected()


steps = st.lists(
    st.tuples(
        st.sampled_from(["own", "late own", "other", "pause", "third"]),
        st.integers(min_value=0, max_value=400),
    ),
    max_size=200,
)


@given(steps)
def test_a_suspected_node_was_silent_for_the_limit(drawn: list[tuple[str, int]]) -> None:
    """By the clock of whoever suspects it, in every order of heartbeats and delays.

    Five own heartbeats at least, the last of them young, follow its last one.
    """
    log, heard_ms, since, own_ms = Log(), dict[NodeId, int](), dict[NodeId, int](), 0
    for what, by_ms in drawn:
        log.now_ms += by_ms
        if what in ("own", "late own"):
            own_ms = log.now_ms - (by_ms if what == "late own" else 0)
            log.own(own_ms)
            since = {node: number + 1 for node, number in since.items()}
        elif what in ("other", "third"):
            node = NodeId(what)
            log.other(node=node)
            heard_ms[node], since[node] = log.now_ms, 0
        for suspect in log.suspected():
            assert log.now_ms - heard_ms[suspect.node] >= LIMIT_MS
            assert since[suspect.node] > STEPS
            assert log.now_ms - own_ms < LIMIT_MS
