"""Export of a contract as a document of the Open Data Contract Standard (ODCS), version 3.1.0.

ODCS has one price and no range, no load and no notice: the fixed price becomes `price`, and all
terms that it has no key for are custom properties. Decimals there are texts; `priceAmount` has to
be a number.
"""

from typing import Final

from pipeline import durations, sizes
from pipeline.contracts.agreement import Agreement
from pipeline.contracts.documents.quantities import format_rate, format_time
from pipeline.contracts.documents.terms_json import decimal_text
from pipeline.contracts.negotiation.chain import Negotiation
from pipeline.contracts.negotiation.states import State
from schemas.json_value import Json, JsonObject

API_VERSION: Final = "v3.1.0"
_STATUS: Final = {
    State.ABSENT: "draft",
    State.PROPOSED: "proposed",
    State.ACTIVE: "active",
    State.RENEWING: "active",
    State.CANCELLED: "deprecated",
    State.ENDED: "retired",
    State.LAPSED: "retired",
    State.WITHDRAWN: "retired",
}


def odcs(negotiation: Negotiation) -> JsonObject:
    """The contract as an ODCS document; of an open proposal, with the proposed terms."""
    agreement = negotiation.latest
    contract, price = agreement.contract, agreement.contract.price
    kind = contract.kind.value
    return {
        "apiVersion": API_VERSION,
        "kind": "DataContract",
        "id": contract.id,
        "name": contract.id,
        "version": str(max(1, len(negotiation.agreed))),
        "status": _STATUS[negotiation.state],
        "description": {
            "purpose": f"Contract of kind {kind}: {contract.seller} serves {contract.buyer}.",
            "limitations": f"Boxes: {', '.join(sorted(contract.tasks.boxes))}; "
            f"user code: {'yes' if contract.tasks.python else 'no'}.",
        },
        "price": {
            "priceAmount": float(price.fixed),
            "priceCurrency": price.currency,
            "priceUnit": price.per.value,
        },
        "team": {
            "name": contract.id,
            "members": [
                {"username": contract.seller, "role": "seller"},
                {"username": contract.buyer, "role": "buyer"},
            ],
        },
        "slaProperties": _promises(agreement),
        "customProperties": _properties(agreement),
        "contractCreatedTs": format_time(negotiation.documents[0].at_ms),
    }


def _promises(agreement: Agreement) -> list[Json]:
    """The clauses, as properties of a service level agreement."""
    clauses, contract = agreement.contract.clauses, agreement.contract
    found: list[Json] = [
        {"property": "generalAvailability", "value": format_time(contract.from_ms)},
        {"property": "endOfSupport", "value": format_time(contract.until_ms)},
    ]
    if clauses.availability_ms is not None:
        found.append({"property": "timeToRepair", "value": clauses.availability_ms, "unit": "ms"})
    if clauses.delay_ms is not None:
        found.append({"property": "latency", "value": clauses.delay_ms, "unit": "ms"})
    return found


def _properties(agreement: Agreement) -> list[Json]:
    """The terms that the standard has no key for."""
    contract, limits = agreement.contract, agreement.contract.limits
    values: JsonObject = {
        "medusaKind": contract.kind.value,
        "medusaPriceFixed": decimal_text(contract.price.fixed),
        "medusaPriceRange": decimal_text(contract.price.span),
        "medusaPriceLowest": decimal_text(contract.price.lowest),
        "medusaBoxes": [*sorted(contract.tasks.boxes)],
        "medusaPython": contract.tasks.python,
        "medusaLimitCpu": limits.cpu_units,
        "medusaLimitBytes": format_rate(limits.bytes_per_s),
        "medusaLimitMemory": sizes.format(limits.memory_bytes),
        "medusaNotice": durations.format(contract.notice_ms),
        "medusaRegions": [*sorted(contract.clauses.regions)],
        "medusaPrivacy": contract.clauses.privacy.name.lower(),
        "medusaSettlementPeriod": durations.format(agreement.settlement.period_ms),
        "medusaSettlementTolerance": decimal_text(agreement.settlement.tolerance),
    }
    return [{"property": name, "value": value} for name, value in values.items()]
