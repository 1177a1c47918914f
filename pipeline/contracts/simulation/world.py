"""Event loop of a simulation: delivers messages and ticks to participants, in simulated time."""

import heapq
from collections.abc import Callable, Mapping, Sequence

from pipeline.contracts.decisions import Decision
from pipeline.contracts.load import Load
from pipeline.contracts.messages import Event, LoadsChanged, Message, Outbound, Received, Tick
from pipeline.contracts.participant import step, wake_ms
from pipeline.contracts.simulation.chance import Chance
from pipeline.contracts.simulation.network import Network
from pipeline.contracts.simulation.tally import Tally
from pipeline.contracts.state import NEVER, Participant
from pipeline.contracts.terms import PartyId, TaskId
from pipeline.ids import Millis

Stepping = Callable[[Participant, Event, Millis], tuple[Participant, Sequence[Outbound]]]
"""A participant that does not follow the protocol: it may send what it likes."""
_TICK = Tick()


class World:
    """Participants, the network between them, and the time.

    Args:
        participants: with their first states.
        network: between them.
        chance: random numbers.
        watch: called with each decision; None: nobody looks.
    """

    def __init__(
        self,
        participants: Sequence[Participant],
        network: Network,
        chance: Chance,
        watch: Callable[[Decision], None] | None = None,
    ) -> None:
        self.states = list(participants)
        self.now_ms = Millis(0)
        self.tally = Tally()
        self.messages = 0
        self._network = network
        self._chance = chance
        self._watch = watch
        self._places: Mapping[PartyId, int] = {one.me: at for at, one in enumerate(participants)}
        self._strange: dict[int, Stepping] = {}
        self._away: dict[int, tuple[Millis, Millis]] = {}
        self._queue: list[tuple[int, int, int, Event]] = []
        self._entries = 0
        self._wakes: list[int] = [NEVER] * len(self.states)
        for at, one in enumerate(self.states):
            self._wake(at, wake_ms(one))

    def place_of(self, party: PartyId) -> int:
        """The number of a participant."""
        return self._places[party]

    def replace_steps(self, party: PartyId, stepping: Stepping) -> None:
        """Let a participant act otherwise than the protocol says."""
        self._strange[self._places[party]] = stepping

    def leave(self, party: PartyId, from_ms: Millis, until_ms: Millis) -> None:
        """Stop a participant between two times: it gets no message, and does nothing."""
        self._away[self._places[party]] = (from_ms, until_ms)

    def happen(self, party: PartyId, event: Event, at_ms: Millis) -> None:
        """Schedule an event of a participant."""
        self._put(at_ms, self._places[party], event)

    def change(self, loads: Mapping[TaskId, Load], at_ms: Millis) -> None:
        """Change loads of tasks: who runs one learns it, and everyone who has sent it on."""
        for one in self.states:
            mine = {task: loads[task] for task in one.portfolio.ids if task in loads}
            if mine:
                self.happen(one.me, LoadsChanged(mine), at_ms)

    def run_until(self, end_ms: Millis, quiet_ms: int = NEVER) -> None:
        """Deliver what happens until a time, or until nothing has moved for so long."""
        queue = self._queue
        while queue and queue[0][0] <= end_ms:
            at_ms, _, at, event = heapq.heappop(queue)
            if at_ms - self.tally.moved_ms > quiet_ms:
                self.now_ms = Millis(at_ms)
                return
            if event is _TICK:
                if self._wakes[at] != at_ms:
                    continue
                self._wakes[at] = NEVER
            self.now_ms = Millis(at_ms)
            if at not in self._away or not self._is_away(at, event):
                self._step(at, event)
        self.now_ms = max(self.now_ms, end_ms) if end_ms != NEVER else self.now_ms

    def _is_away(self, at: int, event: Event) -> bool:
        """Whether a participant misses an event; a tick it gets when it is back."""
        from_ms, until_ms = self._away[at]
        if not from_ms <= self.now_ms < until_ms:
            return False
        if event is _TICK:
            self._put(until_ms, at, event)
            self._wakes[at] = until_ms
        return True

    def _step(self, at: int, event: Event) -> None:
        strange = self._strange.get(at)
        if strange is not None:
            self.states[at], messages = strange(self.states[at], event, self.now_ms)
            self._wake(at, wake_ms(self.states[at]))
        else:
            found = step(self.states[at], event, self.now_ms)
            self.states[at] = found.state
            messages = found.messages
            self._wake(at, found.wake_ms)
            for decision in found.decisions:
                self.tally.note(decision)
                if self._watch is not None:
                    self._watch(decision)
        me = self.states[at].me
        for outbound in messages:
            self._send(me, outbound.to, outbound.message)

    def _send(self, sender: PartyId, to: PartyId, message: Message) -> None:
        self.messages += 1
        place = self._places[to]
        for latency_ms in self._network.latencies(self._chance):
            self._put(Millis(self.now_ms + latency_ms), place, Received(sender, message))

    def _wake(self, at: int, wanted_ms: Millis) -> None:
        """Schedule a tick; one that was scheduled before for another time is dropped."""
        if wanted_ms != self._wakes[at]:
            self._wakes[at] = wanted_ms
            if wanted_ms < NEVER:
                self._put(Millis(max(wanted_ms, self.now_ms)), at, _TICK)
                self._wakes[at] = max(wanted_ms, self.now_ms)

    def _put(self, at_ms: Millis, at: int, event: Event) -> None:
        self._entries += 1
        heapq.heappush(self._queue, (at_ms, self._entries, at, event))
