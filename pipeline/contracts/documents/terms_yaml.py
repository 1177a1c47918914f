"""Agreements as YAML, which people write: units instead of base units, times as in RFC 3339."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, TypeVar

import yaml

from pipeline import durations, sizes
from pipeline.contracts.agreement import Agreement, SettlementTerms
from pipeline.contracts.documents.terms_json import decimal_text, read_decimal
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
from pipeline.ids import Millis
from pipeline.nearest import nearest_first
from pipeline.yaml_reader import YamlList, YamlMap, YamlNode, YamlScalar, read

T = TypeVar("T")

ID_PATTERN: Final = r"[a-z0-9][a-z0-9_-]{0,62}"
PARTY_PATTERN: Final = r"[a-z][a-z0-9_]{0,62}"
_RATES: Final = {"B": 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
"""Rates have decimal units, as those of networks; `KiB/s` and so on are read as well."""
_RATE: Final = re.compile(r"(\d{1,15})\s*(B|kB|MB|GB|KiB|MiB|GiB)/s", re.ASCII)
_SECOND_MS: Final = 1_000


class _Wrong(Exception):  # noqa: N818 - carries one problem to `read_terms`
    """A value that is not what its key needs."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _Keys:
    """The entries of a mapping: each key is read once; `end` refuses the others."""

    def __init__(self, node: YamlNode, what: str, file: str) -> None:
        self.what, self.file = what, file
        if not isinstance(node, YamlMap):
            raise self.wrong(f"{what} is a mapping: `{{key: value}}`", node.line)
        self._entries: Mapping[str, tuple[YamlScalar, YamlNode]] = {
            key.text: (key, value) for key, value in node.entries
        }
        self._line = node.line
        self._known: list[str] = []

    def wrong(self, message: str, line: int, choices: tuple[str, ...] = ()) -> _Wrong:
        return _Wrong(Problem(message, self.file, line, choices=choices))

    def node(self, key: str) -> YamlNode | None:
        self._known.append(key)
        found = self._entries.get(key)
        empty = found is not None and isinstance(found[1], YamlScalar) and found[1].null
        return None if found is None or empty else found[1]

    def needed(self, key: str) -> YamlNode:
        found = self.node(key)
        if found is None:
            raise self.wrong(f"{self.what} needs {key}", self._line)
        return found

    def value(self, key: str, convert: Callable[[str], T]) -> T:
        return self._converted(key, self.needed(key), convert)

    def optional(self, key: str, convert: Callable[[str], T], default: T) -> T:
        found = self.node(key)
        return default if found is None else self._converted(key, found, convert)

    def texts(self, key: str) -> frozenset[str]:
        found = self.node(key)
        if found is None:
            return frozenset()
        if not isinstance(found, YamlList):
            raise self.wrong(f"{key} of {self.what} is a list: `[a, b]`", found.line)
        return frozenset(self._converted(key, item, str) for item in found.items)

    def end(self) -> None:
        for key, (written, _) in self._entries.items():
            if key not in self._known:
                choices = nearest_first(key, self._known)
                raise self.wrong(f"{self.what} has no key {key}", written.line, choices)

    def _converted(self, key: str, node: YamlNode, convert: Callable[[str], T]) -> T:
        if not isinstance(node, YamlScalar):
            raise self.wrong(f"{key} of {self.what} is one value", node.line)
        try:
            return convert(node.text)
        except ValueError as error:
            raise self.wrong(f"{key} of {self.what}: {error}", node.line) from error


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
        return _agreement(_Keys(root, "the contract", file))
    except _Wrong as wrong:
        raise DocumentError((wrong.problem,)) from wrong
    except InputError as error:
        place = f"{error.place}: " if error.place else ""
        problem = Problem(f"{place}{error.message}", file, root.line, hint=error.hint)
        raise DocumentError((problem,)) from error


def _agreement(keys: _Keys) -> Agreement:
    contract = Contract(
        id=ContractId(keys.value("contract", _matching(ID_PATTERN, "a contract's name"))),
        kind=Kind(keys.optional("kind", _one_of(*Kind), Kind.LOAD.value)),
        buyer=PartyId(keys.value("buyer", _matching(PARTY_PATTERN, "a participant's name"))),
        seller=PartyId(keys.value("seller", _matching(PARTY_PATTERN, "a participant's name"))),
        price=_price(_Keys(keys.needed("price"), "price", keys.file)),
        tasks=_tasks(_Keys(keys.needed("tasks"), "tasks", keys.file)),
        limits=_limits(_Keys(keys.needed("limits"), "limits", keys.file)),
        from_ms=keys.value("from", parse_time),
        until_ms=keys.value("until", parse_time),
        notice_ms=keys.optional("notice", durations.parse, 0),
        clauses=_clauses(keys),
    )
    settlement = _settlement(keys)
    keys.end()
    return Agreement(contract, settlement)


def _price(keys: _Keys) -> Price:
    price = Price(
        keys.value("currency", Currency),
        keys.value("fixed", read_decimal),
        keys.optional("range", read_decimal, Decimal(0)),
        Per(keys.optional("per", _one_of(*Per), Per.LOAD_UNIT.value)),
    )
    keys.end()
    return price


def _tasks(keys: _Keys) -> TaskSet:
    tasks = TaskSet(keys.texts("boxes"), keys.optional("python", _truth, default=False))
    keys.end()
    return tasks


def _limits(keys: _Keys) -> Limits:
    limits = Limits(
        keys.value("cpu", _whole),
        keys.value("bytes", parse_rate),
        keys.value("memory", sizes.parse),
    )
    keys.end()
    return limits


def _clauses(parent: _Keys) -> Clauses:
    node = parent.node("clauses")
    if node is None:
        return Clauses()
    keys = _Keys(node, "clauses", parent.file)
    choices = tuple(one.name.lower() for one in Privacy)
    clauses = Clauses(
        keys.optional("availability", durations.parse, None),
        keys.optional("delay", durations.parse, None),
        keys.texts("regions"),
        Privacy[keys.optional("privacy", _one_of(*choices), "public").upper()],
    )
    keys.end()
    return clauses


def _settlement(parent: _Keys) -> SettlementTerms:
    node = parent.node("settlement")
    if node is None:
        return SettlementTerms()
    keys, default = _Keys(node, "settlement", parent.file), SettlementTerms()
    settlement = SettlementTerms(
        keys.optional("period", durations.parse, default.period_ms),
        keys.optional("tolerance", read_decimal, default.tolerance),
    )
    keys.end()
    return settlement


def parse_time(text: str) -> Millis:
    """A time such as `2027-01-01T00:00:00Z`; a day alone begins at midnight, UTC.

    >>> parse_time("1970-01-02"), parse_time("1970-01-01T00:00:01Z")
    (86400000, 1000)

    Raises:
        ValueError: it is no time, has no zone, or parts of milliseconds.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no time: write 2027-01-01T00:00:00Z") from error
    if len(text) == len("2027-01-01"):
        moment = moment.replace(tzinfo=UTC)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone: end it with Z")
    if moment.microsecond % 1_000:
        raise ValueError(f"{text!r} has more than three decimal places")
    whole = moment.replace(microsecond=0)
    return Millis(int(whole.timestamp()) * _SECOND_MS + moment.microsecond // 1_000)


def format_time(at_ms: Millis) -> str:
    """The text that `parse_time` reads as the same time."""
    moment = datetime.fromtimestamp(at_ms // _SECOND_MS, UTC)
    fraction = f".{at_ms % _SECOND_MS:03d}" if at_ms % _SECOND_MS else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def parse_rate(text: str) -> int:
    """Bytes per second of a rate.

    >>> parse_rate("2MB/s"), parse_rate("1MiB/s")
    (2000000, 1048576)

    Raises:
        ValueError: it is no rate.
    """
    found = _RATE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no rate: write a whole number and B/s, kB/s, MB/s or GB/s")
    return int(found[1]) * (_RATES | sizes.UNITS_BYTES)[found[2]]


def format_rate(bytes_per_s: int) -> str:
    """The shortest text that `parse_rate` reads as the same rate.

    >>> format_rate(2_000_000), format_rate(1_048_576)
    ('2MB/s', '1048576B/s')
    """
    unit = next(u for u in reversed(_RATES) if bytes_per_s % _RATES[u] == 0)
    return f"{bytes_per_s // _RATES[unit]}{unit}/s"


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


def _matching(pattern: str, what: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(f"{text!r} is not {what}: lower case letters, digits and _")
        return text

    return convert


def _one_of(*choices: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in choices:
            raise ValueError(f"{text!r} is none of {', '.join(choices)}")
        return text

    return convert


def _truth(text: str) -> bool:
    return _one_of("true", "false")(text) == "true"


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is no whole number")
    return int(text)
