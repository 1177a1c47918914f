"""Failure detector: which nodes are suspected, by the heartbeats in the order of their log. Pure.

The node's own heartbeats are the ruler: silence of another node is measured by own heartbeats that
follow its last one in the log. A node that is cut off from Kafka reads no own heartbeat, and
suspects none.

| observation, in the order of the log | suspected |
|---|---|
| own heartbeats span the limit since the node's last one | yes: silent |
| no own heartbeat is young: Kafka or this node is away, or the reader stalled | nobody |
| own heartbeats come again after a gap of `OUTAGE_MS` | later, by `RECOVERY_MS` |
| several own ones are read at once | their time counts once, as it passed for the reader |
| the agent's last decision is older than `AGENT_MS` | yes: hanging |
| a last heartbeat, `ended` | yes, at once |
| a heartbeat of a later life | not that one, and the earlier one no more |
| a heartbeat of an earlier life, or after `ended` | no change: it is late |
| a heartbeat of the same life after silence | no more: it was false |
| no heartbeat of the present life was ever read | no |

A suspicion is not a proof, so what is done on it has to be safe without one: a claim raises the
epoch, and Kafka fences the owner before. A false one costs the pause of a takeover. Each false one
doubles the limit of the node, up to 16 times; ten minutes without one halve it again. The end of a
hanging agent is no false suspicion: it did hang.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pipeline.heartbeats.heartbeat import Heartbeat
from pipeline.ids import Millis, NodeId, SteadyMillis

AGENT_MS: Final = 10_000
"""How long an agent may make no decision; an idle one makes five a second."""
STEPS: Final = 4
"""A gap between two own heartbeats counts at most this part of the limit: one is no silence."""
OUTAGE_MS: Final = 500
"""A longer gap between own heartbeats: perhaps no node could write, or nothing could be read."""
RECOVERY_MS: Final = 2_000
"""Clients connect again within about a second after Kafka is back, each at another time."""
DOUBLED_MAX: Final = 4
"""How often false suspicions double a limit."""
CALM_MS: Final = 10 * 60_000
"""After this time without a false suspicion a doubled limit is halved."""
FORGOTTEN_MS: Final = 10 * 60_000
"""After this time without a heartbeat a node is forgotten."""
SUSPECTED_MOST_MS: Final = 24 * 3_600_000
"""The same for one that is suspected: it may be up by the catalog, and cut off from Kafka."""


@dataclass(frozen=True, slots=True, order=True)
class Suspect:
    """A life of a node that is suspected: its process may have ended, hang or be cut off."""

    node: NodeId
    life: Millis


class Why(StrEnum):
    """Why a node is suspected."""

    ENDED = "ended"
    SILENT = "silent"
    HANGING = "hanging"


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The facts of a suspicion.

    Args:
        why: the reason.
        for_ms: how long the node, or its agent, has been silent; 0 if it has ended.
        limit_ms: the limit of that; 0 if it has ended.
        false: number of earlier suspicions of this node that were false.
        sign_ms: steady time of what it follows: when the last heartbeat was read, or, of an agent
            that hangs, when that had decided last.
    """

    why: Why
    for_ms: int
    limit_ms: int
    false: int
    sign_ms: SteadyMillis


@dataclass(slots=True)
class _Own:
    """The newest own heartbeat: when it was sent and read, on one clock."""

    sent_ms: int
    read_ms: int


@dataclass(slots=True)
class _Other:
    """What is known of another node.

    Args:
        life: its latest.
        read_ms: when its last heartbeat was read.
        agent_ms: of its last heartbeat.
        ended: whether it was its last one.
        silent_ms: the span of own heartbeats since then; negative: it has more time; None: no own
            heartbeat was read since.
        called: it was called silent since then.
        doubled: how often its limit is doubled.
        false: number of false suspicions.
        since_ms: when `doubled` last changed.
    """

    life: Millis
    read_ms: int
    agent_ms: int
    ended: bool
    silent_ms: int | None = None
    called: bool = False
    doubled: int = 0
    false: int = 0
    since_ms: int = 0


class Detector:
    """Suspected nodes, from heartbeats in the order of the log.

    Args:
        node: its own name, never suspected.
        life: its own.
        limit_ms: how long a node may be silent that was never suspected falsely.
    """

    def __init__(self, node: NodeId, life: Millis, limit_ms: int) -> None:
        self._node = node
        self._life = life
        self._limit_ms = limit_ms
        self._own: _Own | None = None
        self._others: dict[NodeId, _Other] = {}

    def take(self, heartbeat: Heartbeat, now_ms: SteadyMillis) -> bool:
        """Take in the next heartbeat of the log, read at steady time `now_ms`.

        Returns:
            Whether it is an own one.
        """
        if heartbeat.node != self._node:
            self._take_other(heartbeat, now_ms)
            return False
        if heartbeat.life != self._life or heartbeat.ended:
            return False
        self._measure(heartbeat.sent_ms, now_ms)
        return True

    def suspicions(self, now_ms: SteadyMillis) -> Mapping[Suspect, Suspicion]:
        """The suspected nodes at steady time `now_ms`; none while this node is blind."""
        self._forget(now_ms)
        if self.blind(now_ms):
            return {}
        found = {}
        for node, other in self._others.items():
            suspicion = self._judged(other)
            if suspicion is not None:
                other.called = other.called or suspicion.why is Why.SILENT
                found[Suspect(node, other.life)] = suspicion
        return found

    def blind(self, now_ms: SteadyMillis) -> bool:
        """Whether no own heartbeat is young, so that nothing is known of others."""
        return self._own is None or now_ms - self._own.sent_ms >= self._limit_ms

    def _judged(self, other: _Other) -> Suspicion | None:
        limit_ms, silent_ms = self._limit_of(other), other.silent_ms or 0
        read_ms = SteadyMillis(other.read_ms)
        if other.ended:
            return Suspicion(Why.ENDED, 0, 0, other.false, read_ms)
        if silent_ms >= limit_ms:
            return Suspicion(Why.SILENT, silent_ms, limit_ms, other.false, read_ms)
        if other.agent_ms > AGENT_MS:
            decided_ms = SteadyMillis(read_ms - other.agent_ms)
            return Suspicion(Why.HANGING, other.agent_ms, AGENT_MS, other.false, decided_ms)
        return None

    def _limit_of(self, other: _Other) -> int:
        return self._limit_ms << other.doubled

    def _take_other(self, heartbeat: Heartbeat, now_ms: int) -> None:
        """Take in a heartbeat of another node."""
        other = self._others.get(heartbeat.node)
        if other is None:
            other = _Other(heartbeat.life, now_ms, heartbeat.agent_ms, heartbeat.ended)
            self._others[heartbeat.node] = other
            return
        if heartbeat.life < other.life or (heartbeat.life == other.life and other.ended):
            return
        if other.called and heartbeat.life == other.life and not heartbeat.ended:
            other.false += 1
            other.doubled, other.since_ms = min(DOUBLED_MAX, other.doubled + 1), now_ms
        other.life, other.ended, other.agent_ms = (
            heartbeat.life,
            heartbeat.ended,
            heartbeat.agent_ms,
        )
        other.read_ms, other.silent_ms, other.called = now_ms, None, False

    def _measure(self, sent_ms: int, now_ms: int) -> None:
        """Add the time between two own heartbeats to the silence of all others."""
        last, self._own = self._own, _Own(sent_ms, now_ms)
        if last is None:
            last = self._own
        self._own.sent_ms = max(sent_ms, last.sent_ms)
        sent_gap_ms, read_gap_ms = self._own.sent_ms - last.sent_ms, now_ms - last.read_ms
        counted_ms = min(sent_gap_ms, read_gap_ms, self._limit_ms // STEPS)
        resumed = max(sent_gap_ms, read_gap_ms) > OUTAGE_MS
        for other in self._others.values():
            if other.silent_ms is not None and other.silent_ms >= self._limit_of(other):
                other.silent_ms += counted_ms
            elif resumed:
                other.silent_ms = -RECOVERY_MS
            else:
                other.silent_ms = 0 if other.silent_ms is None else other.silent_ms + counted_ms

    def _forget(self, now_ms: int) -> None:
        """Forget nodes that are gone, and halve limits after a calm time."""
        gone = [
            node
            for node, one in self._others.items()
            if now_ms - one.read_ms
            >= (FORGOTTEN_MS if self._judged(one) is None else SUSPECTED_MOST_MS)
        ]
        for node in gone:
            del self._others[node]
        for other in self._others.values():
            while other.doubled and now_ms - other.since_ms >= CALM_MS:
                other.doubled -= 1
                other.since_ms += CALM_MS
