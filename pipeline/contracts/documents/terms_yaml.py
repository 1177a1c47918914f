"""Agreements as YAML, which people write: units instead of base units, times as in RFC 3339."""

from decimal import Decimal
from typing import Any, Final

import yaml

from pipeline import durations, sizes
from pipeline.contracts.agreement import Agreement, SettlementTerms
from pipeline.contracts.documents.quantities import (
    format_rate,
    format_time,
    parse_rate,
    parse_time,
)
from pipeline.contracts.documents.terms_json import decimal_text, read_decimal
from pipeline.contracts.documents.yaml_keys import (
    Keys,
    WrongValue,
    matching,
    one_of,
    truth,
    whole,
)
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
from pipeline.errors import DocumentError, InputError, Problem
from pipeline.yaml_reader import read

ID_PATTERN: Final = r"[a-z0-9][a-z0-9_-]{0,62}"
PARTY_PATTERN: Final = r"[a-z][a-z0-9_]{0,62}"


def read_terms(text: str, file: str) -> Agreement:
    """Read an agreement from YAML.

    Args:
        text: the document.
        file: its name, for errors.

    Raises:
        DocumentError: it is not YAML, or a key is missing, unknown or has an invalid value.
    """
    root, problems = read(text, file)
    if problems or root is None:
        raise DocumentError(problems)
    try:
        return _agreement(Keys(root, "the contract", file))
    except WrongValue as wrong:
        raise DocumentError((wrong.problem,)) from wrong
    except InputError as error:
        place = f"{error.place}: " if error.place else ""
        problem = Problem(f"{place}{error.message}", file, root.line, hint=error.hint)
        raise DocumentError((problem,)) from error


def _agreement(keys: Keys) -> Agreement:
    contract = Contract(
        id=ContractId(keys.value("contract", matching(ID_PATTERN, "a contract's name"))),
        kind=Kind(keys.optional("kind", one_of(*Kind), Kind.LOAD.value)),
        buyer=PartyId(keys.value("buyer", matching(PARTY_PATTERN, "a participant's name"))),
        seller=PartyId(keys.value("seller", matching(PARTY_PATTERN, "a participant's name"))),
        price=_price(Keys(keys.needed("price"), "price", keys.file)),
        tasks=_tasks(Keys(keys.needed("tasks"), "tasks", keys.file)),
        limits=_limits(Keys(keys.needed("limits"), "limits", keys.file)),
        from_ms=keys.value("from", parse_time),
        until_ms=keys.value("until", parse_time),
        notice_ms=keys.optional("notice", durations.parse, 0),
        clauses=_clauses(keys),
    )
    settlement = _settlement(keys)
    keys.end()
    return Agreement(contract, settlement)


def _price(keys: Keys) -> Price:
    price = Price(
        keys.value("currency", Currency),
        keys.value("fixed", read_decimal),
        keys.optional("range", read_decimal, Decimal(0)),
        Per(keys.optional("per", one_of(*Per), Per.LOAD_UNIT.value)),
    )
    keys.end()
    return price


def _tasks(keys: Keys) -> TaskSet:
    tasks = TaskSet(keys.texts("boxes"), keys.optional("python", truth, default=False))
    keys.end()
    return tasks


def _limits(keys: Keys) -> Limits:
    limits = Limits(
        keys.value("cpu", whole),
        keys.value("bytes", parse_rate),
        keys.value("memory", sizes.parse),
    )
    keys.end()
    return limits


def _clauses(parent: Keys) -> Clauses:
    node = parent.node("clauses")
    if node is None:
        return Clauses()
    keys = Keys(node, "clauses", parent.file)
    choices = tuple(one.name.lower() for one in Privacy)
    clauses = Clauses(
        keys.optional("availability", durations.parse, None),
        keys.optional("delay", durations.parse, None),
        keys.texts("regions"),
        Privacy[keys.optional("privacy", one_of(*choices), "public").upper()],
    )
    keys.end()
    return clauses


def _settlement(parent: Keys) -> SettlementTerms:
    node = parent.node("settlement")
    if node is None:
        return SettlementTerms()
    keys, default = Keys(node, "settlement", parent.file), SettlementTerms()
    settlement = SettlementTerms(
        keys.optional("period", durations.parse, default.period_ms),
        keys.optional("tolerance", read_decimal, default.tolerance),
    )
    keys.end()
    return settlement


def written_terms(agreement: Agreement) -> dict[str, Any]:
    """The agreement as the values of its YAML document."""
    contract, price, limits = (
        agreement.contract,
        agreement.contract.price,
        agreement.contract.limits,
    )
    clauses: dict[str, Any] = {"privacy": contract.clauses.privacy.name.lower()}
    if contract.clauses.availability_ms is not None:
        clauses["availability"] = durations.format(contract.clauses.availability_ms)
    if contract.clauses.delay_ms is not None:
        clauses["delay"] = durations.format(contract.clauses.delay_ms)
    if contract.clauses.regions:
        clauses["regions"] = sorted(contract.clauses.regions)
    return {
        "contract": str(contract.id),
        "kind": contract.kind.value,
        "buyer": str(contract.buyer),
        "seller": str(contract.seller),
        "price": {
            "currency": str(price.currency),
            "per": price.per.value,
            "fixed": decimal_text(price.fixed),
            "range": decimal_text(price.span),
        },
        "tasks": {"boxes": sorted(contract.tasks.boxes), "python": contract.tasks.python},
        "limits": {
            "cpu": limits.cpu_units,
            "bytes": format_rate(limits.bytes_per_s),
            "memory": sizes.format(limits.memory_bytes),
        },
        "from": format_time(contract.from_ms),
        "until": format_time(contract.until_ms),
        "notice": durations.format(contract.notice_ms),
        "clauses": clauses,
        "settlement": {
            "period": durations.format(agreement.settlement.period_ms),
            "tolerance": decimal_text(agreement.settlement.tolerance),
        },
    }


def write_terms(agreement: Agreement) -> str:
    """The YAML document of an agreement; `read_terms` reads the same agreement."""
    return yaml.safe_dump(written_terms(agreement), sort_keys=False, default_flow_style=None)
