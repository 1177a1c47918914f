"""A participant: messages that are late, doubled, wrong or a stranger's move and owe nothing."""

from dataclasses import replace
from decimal import Decimal

import pytest

from pipeline.contracts.costs import Levels, QueueingCost
from pipeline.contracts.load import Load, Task, Work
from pipeline.contracts.messages import (
    Answer,
    Confirmed,
    ContractAgreed,
    End,
    Ended,
    Event,
    LoadsChanged,
    Message,
    Move,
    Offer,
    PartnerLost,
    Received,
    Taken,
    TasksAdded,
    TasksRemoved,
    Tick,
)
from pipeline.contracts.money import Currency
from pipeline.contracts.participant import Step, participant, step
from pipeline.contracts.portfolio import OfferNumber
from pipeline.contracts.state import Participant, Settings
from pipeline.contracts.terms import (
    Contract,
    ContractId,
    Kind,
    Limits,
    PartyId,
    Price,
    TaskId,
    TaskSet,
)
from pipeline.errors import InputError
from pipeline.ids import Millis

A, B, C = PartyId("a"), PartyId("b"), PartyId("c")
LEVELS = Levels(QueueingCost(Load(125.0)), Load(1.0), 100)
SETTINGS = Settings(LEVELS.cost, LEVELS.margin)
PRICE = Price(Currency("EUR"), Decimal(LEVELS.fixed).quantize(Decimal("1E-9")))


def contract(buyer: PartyId, seller: PartyId) -> Contract:
    """A contract about filters."""
    return Contract(
        ContractId(f"{buyer}-{seller}"), Kind.LOAD, buyer, seller, PRICE,
        TaskSet(frozenset({"filter"})), Limits(1000, 10**9, 10**9), Millis(0), Millis(10**9),
    )  # fmt: skip


AB = contract(A, B)
ONE, TEN = OfferNumber(1), OfferNumber(10)
FILTER = Work(frozenset({"filter"}))


def tasks(party: PartyId, count: int, work: Work = FILTER) -> list[Task]:
    """Tasks of one load unit."""
    return [Task(TaskId(f"{party}.{at}"), party, Load(1.0), work) for at in range(count)]


def pair(mine: int, others: int) -> tuple[Participant, Participant]:
    """A, which may send to B, with so many load units each."""
    return (
        participant(A, SETTINGS, tasks(A, mine), [AB]),
        participant(B, SETTINGS, tasks(B, others), [AB]),
    )


def said(found: Step) -> Message:
    """The one message of a step."""
    (outbound,) = found.messages
    return outbound.message


def at(ms: int, state: Participant, event: Event) -> Step:
    """A step at a time."""
    return step(state, event, Millis(ms))


def moving() -> tuple[Step, Step, Move]:
    """Sender and receiver after the answer, and the move that is on its way."""
    sender, receiver = pair(110, 50)
    offered = at(60_000, sender, Tick())
    kept = at(60_010, receiver, Received(A, said(offered)))
    answered = at(61_000, kept.state, Tick())
    moved = at(61_010, offered.state, Received(B, said(answered)))
    move = said(moved)
    assert isinstance(move, Move)
    return moved, answered, move


def test_a_move_from_offer_to_confirmation() -> None:
    """What costs more than the price moves; until it is confirmed, the sender runs it too."""
    moved, answered, move = moving()
    assert len(move.tasks) == 10
    taken = at(61_020, answered.state, Received(A, move))
    assert taken.state.portfolio.load.cpu == 60
    assert moved.state.portfolio.load.cpu == 110
    sent = at(61_030, moved.state, Received(B, said(taken)))
    assert sent.state.portfolio.load.cpu == 100
    assert {one.move.price for one in sent.state.portfolio.sent} == {PRICE.fixed}
    over = at(61_040, taken.state, Received(A, said(sent)))
    assert over.messages == ()
    assert not over.state.incoming


def test_doubled_messages_change_nothing() -> None:
    """Each message twice ends in the same tasks as once; a doubled move is answered again."""
    moved, answered, move = moving()
    first = at(61_020, answered.state, Received(A, move))
    again = at(61_025, first.state, Received(A, move))
    assert again.state.portfolio == first.state.portfolio
    assert said(again) == said(first)
    sent = at(61_030, moved.state, Received(B, said(first)))
    doubled = at(61_035, sent.state, Received(B, said(again)))
    assert doubled.state.portfolio == sent.state.portfolio
    assert said(doubled) == said(sent)


def test_a_late_answer_moves_nothing() -> None:
    """The offer has lapsed; the reservation lapses too."""
    sender, receiver = pair(110, 50)
    offered = at(60_000, sender, Tick())
    kept = at(60_010, receiver, Received(A, said(offered)))
    answered = at(61_000, kept.state, Tick())
    lapsed = at(70_000, offered.state, Tick())
    late = at(70_010, lapsed.state, Received(B, said(answered)))
    assert late.messages == ()
    assert late.state.portfolio.sent == ()
    free = at(80_000, answered.state, Tick())
    assert free.state.reserved.units == 0


def test_a_late_taken_is_void() -> None:
    """The sender has given up and runs the tasks; the receiver drops them and is owed nothing."""
    moved, answered, move = moving()
    taken = at(61_020, answered.state, Received(A, move))
    state, now = moved.state, 61_010
    while state.outgoing is not None:
        now = state.outgoing.due_ms
        state = at(now, state, Tick()).state
    late = at(now + 1, state, Received(B, said(taken)))
    assert said(late) == Confirmed(AB.id, ONE, ())
    void = at(now + 2, taken.state, Received(A, said(late)))
    assert void.state.portfolio.load.cpu == 50


def test_loads_are_checked_again_at_the_move() -> None:
    """A receiver that has become full meanwhile takes nothing."""
    moved, answered, move = moving()
    full = at(61_015, answered.state, LoadsChanged({TaskId("b.0"): Load(55.0)}))
    refused = at(61_020, full.state, Received(A, move))
    assert said(refused) == Taken(AB.id, ONE, ())
    kept = at(61_030, moved.state, Received(B, said(refused)))
    assert kept.state.portfolio.load.cpu == 110


@pytest.mark.parametrize(
    "offer",
    [
        Offer(AB.id, ONE, PRICE.fixed * 2, tuple(tasks(A, 3))),
        Offer(AB.id, ONE, Decimal("nan"), tuple(tasks(A, 3))),
        Offer(AB.id, ONE, PRICE.fixed, tuple(tasks(A, 3, Work(frozenset({"join"}))))),
        Offer(AB.id, ONE, PRICE.fixed, tuple(tasks(A, 3, Work(regions=frozenset({"eu"}))))),
        Offer(AB.id, ONE, PRICE.fixed, tuple(tasks(B, 3))),
    ],
)
def test_a_wrong_offer_is_refused(offer: Offer) -> None:
    """Outside of the range, no price, outside of the task set or the clauses, one that is here."""
    _, receiver = pair(0, 50)
    kept = at(1_000, receiver, Received(A, offer))
    answered = kept if kept.messages else at(2_000, kept.state, Tick())
    assert said(answered) == Answer(AB.id, ONE, ())
    assert answered.state.reserved.units == 0


@pytest.mark.parametrize(
    "message",
    [
        Offer(AB.id, ONE, PRICE.fixed, tuple(tasks(A, 3))),
        Move(AB.id, ONE, PRICE.fixed, tuple(tasks(A, 3))),
        Answer(AB.id, ONE, ((TaskId("a.0"), PRICE.fixed),)),
        Taken(AB.id, ONE, (TaskId("a.0"),)),
        Confirmed(AB.id, ONE, (TaskId("a.0"),)),
        End(AB.id, ONE, (TaskId("a.0"),)),
        Ended(AB.id, ONE, (TaskId("a.0"),)),
    ],
)
def test_a_stranger_is_not_answered(message: Message) -> None:
    """Whatever the message, at both sides of the contract that it names."""
    for state in pair(110, 50):
        found = at(1_000, state, Received(C, message))
        assert (found.messages, found.state) == ((), state)


def test_a_wrong_answer_breaks_the_contract() -> None:
    """Tasks that were not offered, or a price outside of the range: nothing moves."""
    sender, _ = pair(110, 0)
    offered = at(60_000, sender, Tick())
    for asks in (
        ((TaskId("b.0"), PRICE.fixed),),
        ((TaskId("a.0"), PRICE.fixed * 2),),
        ((TaskId("a.0"), PRICE.fixed), (TaskId("a.0"), PRICE.fixed)),
    ):
        found = at(60_010, offered.state, Received(B, Answer(AB.id, ONE, asks)))
        assert found.messages == ()
        assert found.state.buying[AB.id].broken
        assert found.state.buying[AB.id].skip_until == 60_010 + SETTINGS.skip_most_ms


def after_a_move() -> tuple[Participant, Participant]:
    """A with 100 units, 10 more of it at B."""
    moved, answered, move = moving()
    taken = at(61_020, answered.state, Received(A, move))
    sent = at(61_030, moved.state, Received(B, said(taken)))
    over = at(61_040, taken.state, Received(A, said(sent)))
    return sent.state, over.state


def test_a_sender_takes_back_what_has_become_cheap() -> None:
    """After its own load has fallen; the partner stops, and the sender runs them at once."""
    sender, receiver = after_a_move()
    fallen = at(62_000, sender, LoadsChanged({TaskId(f"a.{n}"): Load(0.5) for n in range(10, 90)}))
    back = at(63_000, fallen.state, Tick())
    assert back.state.portfolio.sent == ()
    ended = at(63_010, receiver, Received(A, said(back)))
    assert ended.state.portfolio.load.cpu == 50
    over = at(63_020, back.state, Received(B, said(ended)))
    assert over.state.endings == ()


def test_a_receiver_gives_back_what_has_become_dear() -> None:
    """It goes to its origin; the receiver runs it until the origin does."""
    sender, receiver = after_a_move()
    risen = at(62_000, receiver, LoadsChanged({TaskId("b.0"): Load(70.0)}))
    back = at(63_000, risen.state, Tick())
    assert back.state.portfolio.load.cpu == 129
    home = at(63_010, sender, Received(B, said(back)))
    assert home.state.portfolio.load.cpu > 100
    over = at(63_020, back.state, Received(A, said(home)))
    assert over.state.portfolio.load.cpu + home.state.portfolio.load.cpu == 229


def test_more_tasks_are_offered_without_a_pause() -> None:
    """Also to a partner that has just refused."""
    sender, _ = pair(90, 50)
    buying = sender.buying[AB.id]._replace(failures=3, skip_until=Millis(10**8))
    refused = sender._replace(buying={AB.id: buying})
    more = [Task(TaskId(f"a.new{number}"), A, Load(1.0), FILTER) for number in range(40)]
    added = at(100_000, refused, TasksAdded(tuple(more)))
    assert added.state.portfolio.load.units == 130
    assert added.wake_ms <= 101_000
    assert isinstance(said(at(101_000, added.state, Tick())), Offer)


def test_a_task_that_is_removed_ends_at_the_partner_too() -> None:
    """And a move of it that is on its way moves nothing."""
    moved, answered, move = moving()
    taken = at(61_020, answered.state, Received(A, move))
    sent = at(61_030, moved.state, Received(B, said(taken)))
    confirmed = at(61_040, taken.state, Received(A, said(sent)))
    name = move.tasks[0].id
    removed = at(70_000, sent.state, TasksRemoved((name,)))
    assert name not in removed.state.portfolio.ids
    stopped = at(70_010, confirmed.state, Received(A, said(removed)))
    assert name not in stopped.state.portfolio.ids
    assert not at(70_020, removed.state, Received(B, said(stopped))).state.endings

    early = at(61_015, moved.state, TasksRemoved(tuple(task.id for task in move.tasks)))
    void = at(61_030, early.state, Received(B, said(taken)))
    over = at(61_040, taken.state, Received(A, said(void)))
    assert over.state.portfolio.load == answered.state.portfolio.load
    assert not void.state.portfolio.sent


@pytest.mark.parametrize("event", [TasksAdded(tuple(tasks(B, 1))), TasksRemoved((TaskId("b.0"),))])
def test_tasks_of_others_are_neither_added_nor_removed(event: Event) -> None:
    """A participant adds and removes its own."""
    sender, _ = pair(1, 1)
    with pytest.raises(InputError, match=r"origin|own"):
        at(1, sender, event)


def test_a_lost_partner_is_owed_nothing() -> None:
    """Its tasks are dropped, own ones run here again; it is asked after the longest pause."""
    sender, receiver = after_a_move()
    assert at(70_000, sender, PartnerLost(B)).state.portfolio.load.cpu == 110
    assert at(70_000, receiver, PartnerLost(A)).state.portfolio.load.cpu == 50
    lost = at(70_000, sender, PartnerLost(B)).state
    assert lost.buying[AB.id].skip_until == 70_000 + SETTINGS.skip_most_ms


def test_tasks_come_home_when_the_contract_ends() -> None:
    """Both sides see to it: whichever clock is first."""
    sender, receiver = after_a_move()
    over = ContractAgreed(replace(AB, until_ms=Millis(80_000)))
    for state in (sender, receiver):
        ready = at(70_000, state, over)
        assert ready.wake_ms <= 80_000
        assert isinstance(said(at(80_000, ready.state, Tick())), End)


def test_an_offer_at_once_in_both_directions() -> None:
    """Each is answered for itself."""
    both = [AB, contract(B, A)]
    one, other = (participant(p, SETTINGS, tasks(p, 110), both) for p in (A, B))
    first, second = at(60_000, one, Tick()), at(60_000, other, Tick())
    kept, others = (
        at(60_010, first.state, Received(B, said(second))),
        at(60_010, second.state, Received(A, said(first))),
    )
    answers = [at(61_000, found.state, Tick()) for found in (kept, others)]
    assert [said(found) for found in answers] == [
        Answer(both[1].id, ONE, ()),
        Answer(AB.id, ONE, ()),
    ]


def test_who_has_nothing_to_sell_wants_no_tick() -> None:
    """So that it costs nothing."""
    sender, _ = pair(90, 0)
    assert at(60_000, sender, Tick()).wake_ms == AB.until_ms


def test_decisions_carry_their_reasons() -> None:
    """Price, costs and alternatives, as data and as a sentence."""
    other = contract(A, C)
    sender = participant(A, SETTINGS, tasks(A, 110), [AB, other])
    (decision,) = at(60_000, sender, Tick()).decisions
    assert decision.lot.price == PRICE.lowest
    assert decision.lot.most is not None
    assert decision.lot.most > float(PRICE.fixed)
    assert decision.alternatives == (f"c for {float(PRICE.lowest):.6g}",)
    assert decision.explained().startswith("a offers a.0, a.1, a.2 and 7 more to b for 0.2")


def test_wrong_settings_are_refused() -> None:
    """A margin of 0 would move load to and fro; a contract of others; doubled names."""
    with pytest.raises(InputError, match="too small"):
        participant(A, replace(SETTINGS, margin=0.0), [], [AB])
    with pytest.raises(InputError, match="neither buyer nor seller"):
        participant(C, SETTINGS, [], [AB])
    with pytest.raises(InputError, match="one name"):
        participant(A, SETTINGS, tasks(A, 1) * 2, [])
    with pytest.raises(InputError, match="another origin"):
        participant(A, SETTINGS, tasks(B, 1), [])
