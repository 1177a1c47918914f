"""Entries of a ledger: settlements of periods, and payments; their JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeVar

from pipeline.contracts.documents.canonical import Digest, digest
from pipeline.contracts.documents.terms_json import decimal_text, read_decimal
from pipeline.contracts.ledger.usage import Count, Period, Settled, Usage
from pipeline.contracts.money import EXACT, Currency, LoadUnits, Money, check_decimal
from pipeline.contracts.negotiation.acts import check_format
from pipeline.contracts.terms import ContractId, PartyId, TaskId
from pipeline.errors import InputError, RefusedError
from pipeline.ids import Millis
from schemas.json_value import Json, JsonObject, list_of, number_of, object_of, text_of

T = TypeVar("T")

FORMAT: Final = 1
LINES_MAX: Final = 500
"""Tasks of a contract in one period."""
REFERENCE_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry is: in which ledger, which number, after which entry.

    Args:
        contract: whose ledger.
        number: from 1.
        previous: digest of the entry before it.
    """

    contract: ContractId
    number: int
    previous: Digest

    def __str__(self) -> str:
        return f"ledger of {self.contract}, entry {self.number}"


@dataclass(frozen=True, slots=True)
class Line:
    """A task in a settlement.

    Args:
        usage: what the seller metered.
        counted: what the buyer counted.
        settled: what is paid and what is disputed.
    """

    usage: Usage
    counted: Count
    settled: Settled

    @property
    def amount(self) -> Decimal:
        """What is owed for it, exactly."""
        return EXACT.multiply(self.settled.paid, self.usage.unit_price)


@dataclass(frozen=True, slots=True)
class Settlement:
    """Entry: the load of a period; the buyer owes the seller its amount."""

    place: Place
    period: Period
    currency: Currency
    lines: tuple[Line, ...]

    @property
    def amount(self) -> Money:
        """What is owed for all tasks."""
        total = Decimal(0)
        for line in self.lines:
            total = EXACT.add(total, line.amount)
        return Money(self.currency, total)


@dataclass(frozen=True, slots=True)
class Payment:
    """Entry: money that one party has paid the other, outside of this system.

    Args:
        place: where it is.
        payer: who paid.
        amount: how much; above 0.
        reference: of the transfer, in one line.

    Raises:
        InputError: the amount is not above 0, or the reference is no line.
    """

    place: Place
    payer: PartyId
    amount: Money
    reference: str

    def __post_init__(self) -> None:
        check_decimal(self.amount.amount, "amount", str(self.place))
        if self.amount.amount == 0:
            raise InputError("the amount is 0", place=str(self.place), hint="nothing was paid.")
        if len(self.reference) > REFERENCE_MAX or not self.reference.isprintable():
            raise InputError(
                "the reference is no line of text",
                place=str(self.place),
                hint=f"it has up to {REFERENCE_MAX} printable characters.",
            )


Entry = Settlement | Payment


def encode_usage(usage: Usage) -> JsonObject:
    """What the seller metered of a task, as JSON."""
    return {
        "task": usage.task,
        "price": decimal_text(usage.unit_price),
        "units": decimal_text(usage.units),
        "records": usage.count.records,
        "bytes": usage.count.bytes,
    }


def decode_usage(found: JsonObject) -> Usage:
    """Read what `encode_usage` returns. Raises KeyError, TypeError, ValueError, InputError."""
    return Usage(
        TaskId(text_of(found["task"])),
        read_decimal(text_of(found["price"])),
        LoadUnits(read_decimal(text_of(found["units"]))),
        Count(number_of(found["records"]), number_of(found["bytes"])),
    )


def encode_entry(entry: Entry) -> JsonObject:
    """The entry as JSON: what both parties sign."""
    place = entry.place
    head: JsonObject = {
        "format": FORMAT,
        "contract": place.contract,
        "number": place.number,
        "previous": place.previous,
    }
    match entry:
        case Settlement():
            lines: list[Json] = [_encode_line(line) for line in entry.lines]
            return {
                **head,
                "document": "settlement",
                "from_ms": entry.period.from_ms,
                "until_ms": entry.period.until_ms,
                "currency": entry.currency,
                "lines": lines,
                "amount": decimal_text(entry.amount.amount),
            }
        case Payment():
            return {
                **head,
                "document": "payment",
                "payer": entry.payer,
                "currency": entry.amount.currency,
                "amount": decimal_text(entry.amount.amount),
                "reference": entry.reference,
            }


def decode_entry(body: JsonObject, where: str) -> Entry:
    """Read what `encode_entry` returns, and nothing else.

    Raises:
        RefusedError: it is something else, its amount is not that of its lines, or a value is
            impossible.
        NewerFormatError: a newer version of Medusa wrote it.
    """
    check_format(body, "entry of a ledger", where)
    try:
        entry = _DECODERS[text_of(body["document"])](body)
    except (KeyError, TypeError, ValueError, InputError) as error:
        raise RefusedError(f"this is no entry of a ledger: {error}", place=where) from error
    if encode_entry(entry) != body:
        raise RefusedError(
            "this entry has unknown fields, wrong sums, or not the one form that is signed",
            place=where,
        )
    return entry


def entry_digest(entry: Entry) -> Digest:
    """The digest of an entry, which the next one contains."""
    return digest(encode_entry(entry))


def _encode_line(line: Line) -> JsonObject:
    return {
        **encode_usage(line.usage),
        "buyer_records": line.counted.records,
        "buyer_bytes": line.counted.bytes,
        "paid_units": decimal_text(line.settled.paid),
        "disputed_units": decimal_text(line.settled.disputed),
        "amount": decimal_text(line.amount),
    }


def _decode_line(found: Json) -> Line:
    fields = object_of(found)
    settled = Settled(
        LoadUnits(_decimal(fields, "paid_units")), LoadUnits(_decimal(fields, "disputed_units"))
    )
    counted = Count(number_of(fields["buyer_records"]), number_of(fields["buyer_bytes"]))
    return Line(decode_usage(fields), counted, settled)


def _decimal(fields: JsonObject, name: str) -> Decimal:
    found = read_decimal(text_of(fields[name]))
    check_decimal(found, name, "line")
    return found


def _place(body: JsonObject) -> Place:
    return Place(
        ContractId(text_of(body["contract"])),
        number_of(body["number"]),
        Digest(text_of(body["previous"])),
    )


def _settlement(body: JsonObject) -> Entry:
    lines = list_of(body["lines"])
    if len(lines) > LINES_MAX:
        raise ValueError(f"{len(lines)} lines")
    return Settlement(
        _place(body),
        Period(Millis(number_of(body["from_ms"])), Millis(number_of(body["until_ms"]))),
        Currency(text_of(body["currency"])),
        tuple(_decode_line(line) for line in lines),
    )


def _payment(body: JsonObject) -> Entry:
    amount = Money(Currency(text_of(body["currency"])), read_decimal(text_of(body["amount"])))
    payer = PartyId(text_of(body["payer"]))
    return Payment(_place(body), payer, amount, text_of(body["reference"]))


_DECODERS: Mapping[str, Callable[[JsonObject], Entry]] = {
    "settlement": _settlement,
    "payment": _payment,
}
