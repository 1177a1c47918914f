"""Export to the Open Data Contract Standard, checked by the standard's own JSON schema."""

import json
from importlib.resources import files
from typing import Any

import jsonschema_rs
import pytest

from pipeline.contracts.documents.odcs import odcs
from pipeline.contracts.negotiation.chain import Negotiation
from pipeline.contracts.negotiation.steps import cancel
from pipeline.contracts.terms import Clauses, Privacy
from tests.unit.contracts.parties import ALICE, NOW, active, proposed, signer, terms

CLAUSES = Clauses(10_000, 3_000, frozenset({"eu", "ch"}), Privacy.INTERNAL)
SCHEMA: Any = json.loads((files("open_data_contract_standard") / "schema.json").read_text("utf-8"))
"""Of the package of that name, which contains the schema of the standard."""


@pytest.mark.parametrize(
    ("contract", "status"),
    [
        (proposed(), "proposed"),
        (active(), "active"),
        (active(terms(clauses=CLAUSES)), "active"),
        (cancel(active(), signer(ALICE, NOW + 2), "")[1], "deprecated"),
        (active().at(terms().contract.until_ms), "retired"),
    ],
)
def test_the_export_is_valid(contract: Negotiation, status: str) -> None:
    """In every state, with and without clauses."""
    found = odcs(contract)
    assert found["status"] == status
    errors = [error.message for error in jsonschema_rs.validator_for(SCHEMA).iter_errors(found)]
    assert errors == []


def test_the_schema_refuses_what_the_standard_does_not_have() -> None:
    """So that the check above can fail."""
    validator = jsonschema_rs.validator_for(SCHEMA)
    assert not validator.is_valid({**odcs(active()), "notice": "1d"})
    assert not validator.is_valid({**odcs(active()), "price": {"priceAmount": "0.004"}})


def test_no_term_is_lost() -> None:
    """Those that the standard has no key for are custom properties."""
    found: Any = odcs(active(terms(clauses=CLAUSES)))
    custom = {one["property"]: one["value"] for one in found["customProperties"]}
    assert found["price"] == {
        "priceAmount": 0.004, "priceCurrency": "EUR", "priceUnit": "load_unit",
    }  # fmt: skip
    assert (custom["medusaPriceFixed"], custom["medusaPriceRange"]) == ("0.004", "0.0004")
    assert custom["medusaLimitBytes"] == "2MB/s"
    assert custom["medusaRegions"] == ["ch", "eu"]
    promised = {one["property"]: one["value"] for one in found["slaProperties"]}
    assert (promised["timeToRepair"], promised["latency"]) == (10_000, 3_000)
