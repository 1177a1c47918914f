"""Terms as YAML and as JSON: both are read as what was written."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts.agreement import Agreement, SettlementTerms
from pipeline.contracts.documents.canonical import canonical
from pipeline.contracts.documents.quantities import parse_time
from pipeline.contracts.documents.terms_json import (
    decimal_text,
    decode_agreement,
    encode_agreement,
    read_decimal,
)
from pipeline.contracts.documents.terms_yaml import read_terms, write_terms
from pipeline.contracts.terms import (
    Clauses,
    Contract,
    ContractId,
    Kind,
    Limits,
    Price,
    Privacy,
    TaskSet,
)
from pipeline.errors import DocumentError, InputError
from pipeline.ids import Millis
from tests.unit.contracts.parties import ALICE, BOB, EUR, terms

YAML = """\
contract: load-2027
kind: load
buyer: alice
seller: bob
price: {currency: EUR, per: load_unit, fixed: "0.0040", range: "0.0004"}
tasks: {boxes: [filter, aggregate], python: false}
limits: {cpu: 50, bytes: 2MB/s, memory: 1GiB}
from: 2027-01-01T00:00:00Z
until: 2028-01-01
notice: 7d
clauses: {availability: 10s, delay: 3s, regions: [eu], privacy: internal}
settlement: {period: 1h, tolerance: "0.02"}
"""
PLACES = st.decimals(0, "0.001", places=12)


@st.composite
def agreements(draw: st.DrawFn) -> Agreement:
    """Any terms."""
    fixed = draw(st.decimals("0.000001", 10**6, places=6))
    span = draw(st.decimals(0, fixed, places=6))
    start = draw(st.integers(0, 2**40))
    contract = Contract(
        ContractId("any"),
        draw(st.sampled_from(Kind)),
        ALICE,
        BOB,
        Price(EUR, fixed, span),
        TaskSet(
            frozenset(draw(st.sets(st.sampled_from("abcdef"), min_size=1))), draw(st.booleans())
        ),
        Limits(*draw(st.tuples(*[st.integers(1, 2**45)] * 3))),
        Millis(start),
        Millis(start + draw(st.integers(1, 2**40))),
        draw(st.integers(0, 10**9)),
        Clauses(
            draw(st.none() | st.integers(0, 10**9)),
            draw(st.none() | st.integers(0, 10**9)),
            frozenset(draw(st.sets(st.sampled_from(["eu", "ch", "us-1"])))),
            draw(st.sampled_from(Privacy)),
        ),
    )
    tolerance = draw(st.decimals(0, "0.999", places=3))
    return Agreement(contract, SettlementTerms(draw(st.integers(10_000, 10**7)), tolerance))


def test_a_document_is_read() -> None:
    """Units become base units."""
    found = read_terms(YAML, "contract.yaml")
    contract = found.contract
    assert contract.price == Price(EUR, Decimal("0.0040"), Decimal("0.0004"))
    assert contract.limits == Limits(50, 2_000_000, 1 << 30)
    assert (contract.from_ms, contract.until_ms) == (1_798_761_600_000, 1_830_297_600_000)
    assert contract.clauses == Clauses(10_000, 3_000, frozenset({"eu"}), Privacy.INTERNAL)
    assert found.settlement == SettlementTerms(3_600_000, Decimal("0.02"))


def test_the_canonical_form_of_terms_does_not_change() -> None:
    """Signatures are of these bytes: another form would make all of them invalid."""
    assert canonical(encode_agreement(read_terms(YAML, ""))).decode() == (
        '{"buyer":"alice","clauses":{"availability_ms":10000,"delay_ms":3000,'
        '"privacy":"internal","regions":["eu"]},"contract":"load-2027","from_ms":1798761600000,'
        '"kind":"load","limits":{"bytes_per_s":2000000,"cpu_units":50,"memory_bytes":1073741824},'
        '"notice_ms":604800000,"price":{"currency":"EUR","fixed":"0.004","per":"load_unit",'
        '"range":"0.0004"},"seller":"bob","settlement":{"period_ms":3600000,"tolerance":"0.02"},'
        '"tasks":{"boxes":["aggregate","filter"],"python":false},"until_ms":1830297600000}'
    )


@given(agreements())
def test_written_terms_are_read_as_the_same(agreement: Agreement) -> None:
    """In both forms, which have one canonical form."""
    plain = encode_agreement(agreement)
    assert decode_agreement(plain, "") == agreement
    again = read_terms(write_terms(agreement), "f")
    assert again == agreement
    assert canonical(encode_agreement(again)) == canonical(plain)


@given(agreements(), st.data())
def test_json_with_any_other_value_is_refused_or_means_something_else(
    agreement: Agreement, data: st.DataObject
) -> None:
    """No two forms mean the same."""
    plain: Any = encode_agreement(agreement)
    name = data.draw(st.sampled_from(sorted(plain)))
    value: Any = data.draw(
        st.sampled_from([None, True, 0, -1, 1.5, "", "x", [], {}, "1e3", ["b", "a"]])
    )
    if plain[name] == value and type(plain[name]) is type(value):
        return
    try:
        found = decode_agreement({**plain, name: value}, "here")
    except InputError:
        return
    assert found != agreement


@pytest.mark.parametrize(
    ("before", "after", "message", "line"),
    [
        ("buyer: alice", "", "the contract needs buyer", 1),
        ("seller: bob", "seller: alice", "alice is buyer and seller", 1),
        ("seller: bob", "seller: Bob!", "not a participant's name", 4),
        ("kind: load", "kind: gift", "none of load, content, movement, suggested", 2),
        ('"0.0040"', '"NaN"', "'NaN' is no decimal number", 5),
        ('"0.0040"', "-1", "fixed is Decimal('-1')", 1),
        ('"0.0040"', "1e3", "'1e3' is no decimal number", 5),
        ('range: "0.0004"', 'range: "0.005"', "wider than the fixed price", 1),
        ('range: "0.0004"', 'rang: "0.0004"', "price has no key rang", 5),
        ("EUR", "euro", "no currency", 1),
        ("[filter, aggregate]", "[]", "no kind of box", 1),
        ("[filter, aggregate]", "filter", "boxes of tasks is a list", 6),
        ("python: false", "python: no", "none of true, false", 6),
        ("cpu: 50", "cpu: 0", "cpu_units is 0", 1),
        ("2MB/s", "2MB", "no rate", 7),
        ("until: 2028-01-01", "until: 2026-01-01", "it ends at", 1),
        ("2027-01-01T00:00:00Z", "2027-01-01T00:00:00", "no time zone", 8),
        ("notice: 7d", "notice: -7d", "not a duration", 10),
        ("privacy: internal", "privacy: secret", "none of public, internal, personal", 11),
        ("period: 1h", "period: 1s", "the period is 1000 ms", 1),
        ('tolerance: "0.02"', "tolerance: 1", "the tolerance is 1", 1),
        ("contract: load-2027", "contract: Load/1", "not a contract's name", 1),
    ],
)
def test_a_wrong_document_is_refused_with_its_line(
    before: str, after: str, message: str, line: int
) -> None:
    """Nothing is guessed."""
    assert before in YAML
    with pytest.raises(DocumentError) as caught:
        read_terms(YAML.replace(before, after), "contract.yaml")
    (problem,) = caught.value.problems
    assert message in problem.message
    assert (problem.file, problem.line) == ("contract.yaml", line)


@pytest.mark.parametrize("text", ["", "[]", "a: [", "text"])
def test_other_documents_are_refused(text: str) -> None:
    """Not YAML, or no mapping."""
    with pytest.raises(DocumentError):
        read_terms(text, "f")


@pytest.mark.parametrize(
    "text", ["NaN", "inf", "1e5", "", ".", "1.2.3", "+1", "1_000", "٣", "0" * 41]
)
def test_other_texts_are_no_decimal_numbers(text: str) -> None:
    """Digits and a point only."""
    with pytest.raises(ValueError, match="no decimal number"):
        read_decimal(text)


def test_decimals_have_one_text() -> None:
    """Zeros at the end carry no meaning."""
    texts = [
        decimal_text(Decimal(text)) for text in ("0.0040", "100", "1E+2", "0", "0.000", "-1.50")
    ]
    assert texts == ["0.004", "100", "100", "0", "0", "-1.5"]


def test_times_have_milliseconds_at_most() -> None:
    """Equal times of other zones are equal."""
    assert parse_time("1970-01-01T01:00:00.250+01:00") == 250
    with pytest.raises(ValueError, match="three decimal places"):
        parse_time("1970-01-01T00:00:00.0001Z")


def test_equal_terms_have_equal_json() -> None:
    """However a price was written."""
    one = terms(price=Price(EUR, Decimal("0.0040")))
    other = replace(one, contract=replace(one.contract, price=Price(EUR, Decimal("0.004"))))
    assert encode_agreement(one) == encode_agreement(other)
