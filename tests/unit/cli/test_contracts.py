"""Commands of participants, contracts and ledgers, for two participants on one catalog."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from brokers.versioned_store import Delete
from pipeline.catalog.contracts import ContractKey
from pipeline.contracts.documents.terms_yaml import write_terms
from pipeline.contracts.ledger.usage import Period
from pipeline.contracts.terms import PartyId
from pipeline.ids import Millis, ParticipantId
from pipeline.names import Znodes
from pipeline.operations.contracts.key_files import KeyFolder
from pipeline.operations.contracts.negotiating import Negotiating
from pipeline.operations.contracts.parties import Parties
from pipeline.operations.contracts.settling import Settling
from pipeline.system_clock import SystemClock
from tests.unit.cli.conftest import Called, Caller
from tests.unit.cli.twins import opener
from tests.unit.contracts.ledger.entries_of import COUNTED, usage
from tests.unit.contracts.parties import ALICE, BOB, DAY_MS, LOAD, PERIOD_MS, terms
from tests.unit.deploy.twins import World

As = Callable[..., Called]
TO_BOB, TO_ALICE = ContractKey(BOB, LOAD), ContractKey(ALICE, LOAD)


def now_ms() -> int:
    """The time of the commands: they use the clock of the machine."""
    return SystemClock().now_ms()


@cache  # the minute may end within a test
def begin() -> Millis:
    """A begin of the contract such that some periods are over."""
    now = now_ms()
    return Millis(now - now % PERIOD_MS - 5 * PERIOD_MS)


@pytest.fixture
def world() -> World:
    """Servers with two participants."""
    found = World.new()
    found.catalog.format.ensure(ParticipantId(ALICE), ParticipantId(BOB))
    return found


@pytest.fixture
def call(medusa: Caller, world: World) -> As:
    """Caller as one of the participants, each with a folder of keys."""

    def run(party: PartyId, *arguments: str) -> Called:
        own = (f"--set=participant={party}", f"--set=keys={folder(party)}")
        return medusa(*arguments, *own, opener=opener(world))

    return run


def folder(party: PartyId) -> Path:
    """The keys of a participant."""
    return Path(f"keys-{party}").absolute()


def initialised(call: As) -> None:
    """Both have keys."""
    for party in (ALICE, BOB):
        assert call(party, "participant", "init").code == 0


def agreed(call: As) -> None:
    """Alice has proposed, bob has accepted."""
    initialised(call)
    start = begin()
    document = write_terms(terms(from_ms=start, until_ms=Millis(start + 30 * DAY_MS)))
    Path("load.yaml").write_text(document)
    assert call(ALICE, "contract", "propose", "load.yaml", "--yes").code == 0
    assert call(BOB, "contract", "accept", "load-2027", "--yes").code == 0


def test_a_key_is_made_once_and_readable_by_its_owner_only(call: As) -> None:
    """The private one in a file, the public one in the catalog."""
    made = call(ALICE, "participant", "init", "-o", "json").data
    file = folder(ALICE) / "alice.key"
    assert (made["changed"], made["file"]) == (True, str(file))
    assert (file.stat().st_mode & 0o777, folder(ALICE).stat().st_mode & 0o777) == (0o600, 0o700)
    again = call(ALICE, "participant", "init", "-o", "json").data
    assert (again["changed"], again["fingerprint"]) == (False, made["fingerprint"])
    (shown,) = call(BOB, "participant", "show", "alice", "-o", "json").data["keys"]
    assert shown["fingerprint"] == made["fingerprint"]
    assert not shown["confirmed"]


def test_a_private_key_that_others_can_read_is_refused(call: As) -> None:
    """As ssh does."""
    initialised(call)
    file = folder(ALICE) / "alice.key"
    file.chmod(0o640)
    refused = call(ALICE, "participant", "init")
    assert refused.code == 65
    assert "others can read" in refused.err
    file.chmod(0o600)
    file.rename(file.with_suffix(".gone"))
    assert "key rotate --revoke" in call(ALICE, "participant", "init").err


def test_two_participants_agree_on_a_contract(call: As) -> None:
    """Propose, counter, accept, list, show, verify, renew, cancel."""
    initialised(call)
    start = Millis(now_ms())
    ours = terms(from_ms=start, until_ms=Millis(start + 30 * DAY_MS))
    Path("load.yaml").write_text(write_terms(ours))
    done = call(ALICE, "contract", "propose", "load.yaml", "--yes")
    assert "it is proposed; it waits for bob" in done.out
    (listed,) = call(BOB, "contract", "list", "--yes", "-o", "json").data["contracts"]
    assert (listed["contract"], listed["state"]) == ("load-2027", "proposed")
    assert call(ALICE, "contract", "accept", "load-2027").code == 65

    Path("other.yaml").write_text(write_terms(ours).replace("0.0004", "0.0002"))
    assert call(BOB, "contract", "counter", "other.yaml").code == 0
    accepted = call(ALICE, "contract", "accept", "bob.load-2027", "-o", "json").data
    assert accepted["state"] == "active"
    assert accepted["terms"]["price"]["range"] == "0.0002"
    shown = call(BOB, "contract", "show", "load-2027", "-o", "json").data
    assert [one["body"]["by"] for one in shown["signed_documents"]] == ["alice", "bob", "alice"]
    assert "# active" in call(BOB, "contract", "show", "load-2027").out
    assert "kind: DataContract" in call(BOB, "contract", "show", "load-2027", "--odcs").out
    assert "3 documents" in call(BOB, "contract", "verify", "load-2027").out

    longer = write_terms(
        terms(from_ms=Millis(start + DAY_MS), until_ms=Millis(start + 90 * DAY_MS))
    )
    Path("longer.yaml").write_text(longer)
    assert "renewing" in call(BOB, "contract", "renew", "longer.yaml").out
    assert "active" in call(ALICE, "contract", "accept", "load-2027").out
    gone = call(BOB, "contract", "cancel", "load-2027", "--reason", "too hot", "-o", "json").data
    assert gone["state"] == "cancelled"
    logged = call(BOB, "events", "--kind", "contract-signed").out
    assert logged.count("load-2027") == 3


def test_a_contract_of_others_or_of_another_kind_is_not_proposed(call: As) -> None:
    """Nor one with boxes that do not exist."""
    initialised(call)
    start = Millis(now_ms())
    text = write_terms(terms(from_ms=start, until_ms=Millis(start + DAY_MS)))
    changes = {
        "alice is no party": text.replace("alice", "carol"),
        "not content": text.replace("kind: load", "kind: content"),
        "no kind of box filtr": text.replace("filter", "filtr"),
        "needs price": "contract: load\nbuyer: alice\nseller: bob\n",
    }
    for message, changed in changes.items():
        Path("load.yaml").write_text(changed)
        refused = call(ALICE, "contract", "propose", "load.yaml", "--yes")
        assert refused.code == 65
        assert message in refused.err
    assert call(ALICE, "contract", "list").err == "there is no contract\n"


def test_the_first_use_of_a_key_is_confirmed_and_another_key_is_refused(
    call: As, world: World
) -> None:
    """A changed key is trusted if the remembered one has endorsed it."""
    agreed(call)
    keys = world.catalog.keys.get(BOB)
    assert keys is not None
    assert (folder(ALICE) / "known_keys").read_text() == f"bob {keys.current.public}\n"
    (folder(ALICE) / "known_keys").unlink()
    unknown = call(ALICE, "contract", "verify", "load-2027")
    assert unknown.code == 65
    assert "no terminal to ask" in unknown.err
    assert call(ALICE, "contract", "verify", "load-2027", "--yes").code == 0

    assert call(BOB, "participant", "key", "rotate").code == 0
    assert call(ALICE, "contract", "verify", "load-2027").code == 0
    assert call(BOB, "participant", "key", "rotate", "--revoke").code == 0
    refused = call(ALICE, "contract", "verify", "load-2027", "--yes")
    assert "another key than the remembered one" in refused.err
    assert call(ALICE, "participant", "trust", "bob", "--yes").code == 0
    assert call(ALICE, "contract", "verify", "load-2027").code == 0
    assert call(BOB, "contract", "cancel", "load-2027").code == 0
    remarks = call(ALICE, "participant", "show", "bob").out
    assert remarks.count("revoked") == 1
    assert remarks.count("confirmed") == 1


def settle(world: World, number: int) -> None:
    """Settle a period, by both."""
    settling = {}
    for party in (ALICE, BOB):
        parties = Parties(party, world.catalog, KeyFolder(folder(party)), _Now(now_ms()))
        settling[party] = Settling(Negotiating(parties, lambda _: None))
    contract, _, _ = settling[BOB].negotiating.read(TO_ALICE)
    start = contract.agreed[0].contract.from_ms + number * PERIOD_MS
    settling[BOB].invoice(TO_ALICE, Period.containing(Millis(start), PERIOD_MS), (usage(),))
    settling[ALICE].answer(TO_BOB, lambda _, tasks: dict.fromkeys(tasks, COUNTED))
    settling[BOB].countersign(TO_ALICE)
    settling[ALICE].countersign(TO_BOB)


class _Now:
    """Clock that stands."""

    def __init__(self, at_ms: int) -> None:
        self.at_ms = at_ms

    def now_ms(self) -> Millis:
        """Wall time."""
        return Millis(self.at_ms)

    def monotonic_s(self) -> float:
        """Always 0."""
        return 0.0

    def sleep(self, seconds: float) -> None:
        """Does not wait."""


def test_a_ledger_is_shown_verified_and_exported(call: As, world: World) -> None:
    """In both copies, and as a file."""
    agreed(call)
    assert "nothing was settled" in call(ALICE, "ledger", "show", "load-2027").err
    for number in range(3):
        settle(world, number)
    shown = call(ALICE, "ledger", "show", "load-2027", "-o", "json").data
    assert (shown["periods"], shown["owed"], shown["problems"]) == (3, "0.15", [])
    assert "0.15 EUR" in call(ALICE, "ledger", "show", "load-2027").out
    data = call(BOB, "ledger", "show", "-o", "json").data
    assert [(one["party"], one["balance"]) for one in data["balances"]] == [
        ("alice", "-0.15"),
        ("bob", "0.15"),
    ]
    (account,) = data["accounts"]
    assert (account["buyer"], account["seller"], account["owed"]) == ("alice", "bob", "0.15")
    assert "3 entries, right" in call(BOB, "ledger", "verify", "load-2027").out

    assert call(BOB, "ledger", "export", "load-2027", "a.jsonl").code == 0
    checked = call(ALICE, "ledger", "verify", "load-2027", "--file", "a.jsonl")
    assert "3 entries, right" in checked.out
    text = Path("a.jsonl").read_text()
    Path("b.jsonl").write_text(text.replace('"units":"12.5"', '"units":"12.6"', 1))
    wrong = call(ALICE, "ledger", "verify", "load-2027", "--file", "b.jsonl")
    assert wrong.code == 65
    assert "entry 1: the signature of alice does not fit" in wrong.err
    Path("c.jsonl").write_text("".join(text.splitlines(keepends=True)[:-1]))
    cut = call(ALICE, "ledger", "verify", "load-2027", "--file", "c.jsonl")
    assert "entry 3: it is missing" in cut.err


def test_exported_entries_are_removed_and_what_is_owed_remains(call: As, world: World) -> None:
    """Of one copy; the other one keeps them."""
    agreed(call)
    settle(world, 0)
    settle(world, 1)
    done = call(ALICE, "ledger", "export", "load-2027", "a.jsonl", "--remove", "-o", "json").data
    assert (done["entries"], done["removed"]) == (2, 2)
    settle(world, 2)
    shown = call(ALICE, "ledger", "show", "load-2027", "-o", "json").data
    assert (shown["opening"], shown["charged"], shown["owed"]) == ("0.1", "0.05", "0.15")
    assert "1 entry, right" in call(ALICE, "ledger", "verify", "load-2027").out
    assert "3 entries, right" in call(BOB, "ledger", "verify", "load-2027").out
    assert call(ALICE, "ledger", "verify", "load-2027", "--file", "a.jsonl").code == 0


def test_a_payment_is_recorded_by_one_and_confirmed_by_the_other(call: As, world: World) -> None:
    """Until then nothing is less owed."""
    agreed(call)
    settle(world, 0)
    paid = call(ALICE, "ledger", "pay", "load-2027", "0.04", "--reference", "transfer 1")
    assert "entry 2 of load-2027: 0.04 EUR paid; waits for bob" in paid.out
    assert call(ALICE, "ledger", "pay", "load-2027", "1").code == 75
    assert call(ALICE, "ledger", "pay", "load-2027", "1e3").code == 64
    assert call(BOB, "ledger", "show", "load-2027", "-o", "json").data["owed"] == "0.05"
    refused = call(BOB, "ledger", "confirm", "load-2027")
    assert "alice has paid 0.04 EUR, 'transfer 1'" in refused.err
    assert refused.code == 65
    assert call(BOB, "ledger", "confirm", "load-2027", "--yes", "-o", "json").data["signed"] == 2
    assert "nothing of load-2027 waits" in call(BOB, "ledger", "confirm", "load-2027").out
    assert call(BOB, "ledger", "show", "load-2027", "-o", "json").data["owed"] == "0.01"
    assert "nothing" in call(ALICE, "ledger", "confirm", "load-2027").out
    assert call(ALICE, "ledger", "show", "load-2027", "-o", "json").data["owed"] == "0.01"


def test_a_file_that_is_ahead_of_the_catalog_is_named(call: As, world: World) -> None:
    """The catalog has lost entries, or is behind."""
    agreed(call)
    settle(world, 0)
    assert call(BOB, "ledger", "export", "load-2027", "b.jsonl").code == 0
    znodes, alice = Znodes(""), ParticipantId(ALICE)
    for path in (znodes.ledger_entry(alice, BOB, LOAD, 1), znodes.ledger(alice, BOB, LOAD)):
        world.store.apply((Delete(path, None),))
    wrong = call(ALICE, "ledger", "verify", "load-2027", "--file", "b.jsonl")
    assert wrong.code == 65
    assert "copy of alice in the catalog ends before it, with entry 0" in wrong.err


def test_a_contract_that_is_wrong_is_named_beside_the_accounts(call: As, world: World) -> None:
    """It owes nothing."""
    agreed(call)
    settle(world, 0)
    world.store.apply((Delete(Znodes("").contract(ParticipantId(ALICE), BOB, LOAD), None),))
    shown = call(BOB, "ledger", "show", "-o", "json").data
    assert shown["accounts"] == []
    assert "follow one that is missing" in shown["problems"][0]
    (listed,) = call(BOB, "contract", "list", "-o", "json").data["contracts"]
    assert "follow one that is missing" in listed["problem"]


def test_a_changed_copy_in_the_catalog_is_found(call: As, world: World) -> None:
    """Its own copy, and that of the partner."""
    agreed(call)
    settle(world, 0)
    settle(world, 1)
    path = Znodes("").ledger_entry(ParticipantId(BOB), ALICE, LOAD, 2)
    world.store.apply((Delete(path, None),))
    for party in (ALICE, BOB):
        wrong = call(party, "ledger", "verify", "load-2027")
        assert wrong.code == 65
        assert "copy of bob: entry 2: it is missing" in wrong.err
    assert "entry 2" in call(BOB, "ledger", "export", "load-2027", "x.jsonl").err
    assert not Path("x.jsonl").exists()
    assert call(ALICE, "ledger", "show", "load-2027", "-o", "json").data["problems"]
