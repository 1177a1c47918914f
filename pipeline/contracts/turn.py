"""One step of a participant while it is computed: its state so far, what it sends and why."""

from collections.abc import Iterable

from pipeline.contracts.decisions import NOTHING, Decision, Lot, What
from pipeline.contracts.messages import Message, Outbound
from pipeline.contracts.portfolio import Portfolio
from pipeline.contracts.state import NEVER, Buying, Ending, Incoming, Participant, Selling
from pipeline.contracts.terms import ContractId, PartyId
from pipeline.ids import Millis


class Turn:
    """State of a step; it lives no longer than the step.

    Args:
        state: before the step.
        now_ms: the time.
    """

    __slots__ = ("decisions", "now_ms", "outbound", "state")

    def __init__(self, state: Participant, now_ms: Millis) -> None:
        self.state = state
        self.now_ms = now_ms
        self.outbound: list[Outbound] = []
        self.decisions: list[Decision] = []

    def send(self, to: PartyId, message: Message) -> None:
        """Send a message."""
        self.outbound.append(Outbound(to, message))

    def in_ms(self, duration_ms: int) -> Millis:
        """The time so much later."""
        return Millis(self.now_ms + duration_ms)

    def owns(self, portfolio: Portfolio) -> None:
        """Replace the tasks. With another load, selling is tried again at the next period."""
        state = self.state
        is_new = state.offer_at == NEVER and state.outgoing is None
        self.state = state._replace(
            portfolio=portfolio,
            offer_at=min(state.offer_at, self.next_period()),
            since_ms=self.now_ms if is_new else state.since_ms,
        )

    def next_period(self) -> Millis:
        """The next time at which offers are made and compared."""
        period_ms = self.state.settings.period_ms
        return Millis((self.now_ms // period_ms + 1) * period_ms)

    def set_buying(self, buying: Buying) -> None:
        """Replace what is known of a contract."""
        changed = {**self.state.buying, buying.contract.id: buying}
        self.state = self.state._replace(buying=changed)

    def set_selling(self, selling: Selling) -> None:
        """Replace what is known of a contract."""
        changed = {**self.state.selling, selling.contract.id: selling}
        self.state = self.state._replace(selling=changed)

    def set_incoming(self, contract: ContractId, incoming: Incoming | None) -> None:
        """Replace the offer in progress of a contract; None: it is over."""
        changed = {key: one for key, one in self.state.incoming.items() if key != contract}
        if incoming is not None:
            changed[contract] = incoming
        self.state = self.state._replace(incoming=changed)

    def set_endings(self, endings: Iterable[Ending]) -> None:
        """Replace the stays that end."""
        self.state = self.state._replace(endings=tuple(endings))

    def skip(self, buying: Buying, *, broken: bool = False) -> None:
        """Do not ask a partner for a while: twice as long each time.

        Args:
            buying: the contract.
            broken: it did not answer or broke the contract, so that it is not asked for longest.
        """
        settings = self.state.settings
        pause_ms = settings.skip_most_ms
        if not broken:
            pause_ms = min(pause_ms, settings.skip_first_ms << min(buying.failures, 16))
        skip_until = self.in_ms(pause_ms)
        self.set_buying(
            buying._replace(skip_until=skip_until, failures=buying.failures + 1, broken=broken)
        )

    def decide(
        self,
        what: What,
        partner: PartyId,
        contract: ContractId | None,
        lot: Lot = NOTHING,
        why: str = "",
    ) -> None:
        """Note a decision with its reasons."""
        others = self.state.buying if what is What.OFFERED else {}
        self.decisions.append(
            Decision(self.now_ms, self.state.me, what, partner, contract, lot, why, others)
        )
