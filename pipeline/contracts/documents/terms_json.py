"""Agreements as JSON: whole numbers in base units, decimals as text, sets as sorted lists.

Equal agreements have equal JSON: a decimal has no zeros at its end.
"""

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Final, TypeVar

from pipeline.contracts.agreement import Agreement, SettlementTerms
from pipeline.contracts.money import Currency
from pipeline.contracts.terms import (
    Clauses,
    Contract,
    ContractId,
    Kind,
    Limits,
    PartyId,
    Per,
    Price,
    Privacy,
    TaskSet,
)
from pipeline.errors import InputError, RefusedError
from pipeline.ids import Millis
from schemas.json_value import Json, JsonObject, list_of, number_of, object_of, text_of

E = TypeVar("E", bound=Enum)

DECIMAL_CHARACTERS_MAX: Final = 40


def decimal_text(number: Decimal) -> str:
    """The one text of a decimal number.

    >>> decimal_text(Decimal("0.0040")), decimal_text(Decimal("1E+2"))
    ('0.004', '100')
    """
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def read_decimal(text: str) -> Decimal:
    """A decimal number as people write it: digits, and perhaps a point.

    Raises:
        ValueError: it is something else, such as `NaN` or `1e3`.
    """
    plain = text.removeprefix("-")
    if len(text) > DECIMAL_CHARACTERS_MAX or not plain.isascii():
        raise ValueError(f"{text[:DECIMAL_CHARACTERS_MAX]!r} is no decimal number")
    if not plain.replace(".", "", 1).isdigit():
        raise ValueError(f"{text!r} is no decimal number")
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is no decimal number") from error


def encode_agreement(agreement: Agreement) -> JsonObject:
    """The agreement as JSON."""
    contract, settlement = agreement.contract, agreement.settlement
    price, limits, clauses = contract.price, contract.limits, contract.clauses
    return {
        "contract": contract.id,
        "kind": contract.kind.value,
        "buyer": contract.buyer,
        "seller": contract.seller,
        "price": {
            "currency": price.currency,
            "per": price.per.value,
            "fixed": decimal_text(price.fixed),
            "range": decimal_text(price.span),
        },
        "tasks": {"boxes": [*sorted(contract.tasks.boxes)], "python": contract.tasks.python},
        "limits": {
            "cpu_units": limits.cpu_units,
            "bytes_per_s": limits.bytes_per_s,
            "memory_bytes": limits.memory_bytes,
        },
        "from_ms": contract.from_ms,
        "until_ms": contract.until_ms,
        "notice_ms": contract.notice_ms,
        "clauses": {
            "availability_ms": clauses.availability_ms,
            "delay_ms": clauses.delay_ms,
            "regions": [*sorted(clauses.regions)],
            "privacy": clauses.privacy.name.lower(),
        },
        "settlement": {
            "period_ms": settlement.period_ms,
            "tolerance": decimal_text(settlement.tolerance),
        },
    }


def decode_agreement(found: JsonObject, place: str) -> Agreement:
    """Read what `encode_agreement` returns, and nothing else.

    Raises:
        RefusedError: a field is missing, unknown, of another type, or not in its one form.
        InputError: the terms are impossible.
    """
    try:
        agreement = _agreement(found)
    except (KeyError, TypeError, ValueError) as error:
        raise RefusedError(f"these are no terms of a contract: {error}", place=place) from error
    except InputError as error:
        error.place = f"{place}, {error.place}" if error.place else place
        raise
    if encode_agreement(agreement) != found:
        raise RefusedError(
            "these terms have unknown fields, or are not in the one form that is signed",
            place=place,
            hint="a newer version of Medusa may have written them.",
        )
    return agreement


def _agreement(found: JsonObject) -> Agreement:
    price, tasks = object_of(found["price"]), object_of(found["tasks"])
    limits, clauses = object_of(found["limits"]), object_of(found["clauses"])
    settlement = object_of(found["settlement"])
    contract = Contract(
        id=ContractId(text_of(found["contract"])),
        kind=_member(Kind, found["kind"]),
        buyer=PartyId(text_of(found["buyer"])),
        seller=PartyId(text_of(found["seller"])),
        price=Price(
            Currency(text_of(price["currency"])),
            read_decimal(text_of(price["fixed"])),
            read_decimal(text_of(price["range"])),
            _member(Per, price["per"]),
        ),
        tasks=TaskSet(_texts(tasks["boxes"]), _truth(tasks["python"])),
        limits=Limits(
            number_of(limits["cpu_units"]),
            number_of(limits["bytes_per_s"]),
            number_of(limits["memory_bytes"]),
        ),
        from_ms=Millis(number_of(found["from_ms"])),
        until_ms=Millis(number_of(found["until_ms"])),
        notice_ms=number_of(found["notice_ms"]),
        clauses=Clauses(
            _optional(number_of, clauses["availability_ms"]),
            _optional(number_of, clauses["delay_ms"]),
            _texts(clauses["regions"]),
            Privacy[text_of(clauses["privacy"]).upper()],
        ),
    )
    tolerance = read_decimal(text_of(settlement["tolerance"]))
    return Agreement(contract, SettlementTerms(number_of(settlement["period_ms"]), tolerance))


def _member(kind: type[E], value: Json) -> E:
    return kind(text_of(value))


def _texts(value: Json) -> frozenset[str]:
    return frozenset(text_of(one) for one in list_of(value))


def _truth(value: Json) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError(f"{value!r} is no truth value")


def _optional(read: Callable[[Json], int], value: Json) -> int | None:
    return None if value is None else read(value)
