"""Contents of which a GUID does not tell that they differ."""

import pytest

from schemas.registry.metadata import Metadata, RuleSet
from schemas.registry.prepare import Sent
from schemas.registry.refused import BadSchemaError, NoSchemaError
from tests.unit.schemas.registry.making import INT, Held, record, to


def test_another_schema_with_the_same_guid_is_refused() -> None:
    """A GUID does not tell where a name ends: of two readings the one that came first counts."""
    held = Held()
    held.register("yz", record("n.X", "a"))
    held.register("z", record("n.X", "b"))
    first = held.register("s", Sent(record("R", "f:n.X"), (to("yz", name="x"),)))
    held.configure("s", compatibility="NONE")
    for subject in ("s", "t"):
        with pytest.raises(BadSchemaError, match=f"GUID {first.version.guid}, too"):
            held.register(subject, Sent(record("R", "f:n.X"), (to("z", name="xy"),)))
    with pytest.raises(NoSchemaError):
        held.lookup("s", Sent(record("R", "f:n.X"), (to("z", name="xy"),)))


def test_metadata_that_read_the_same_are_not_the_same() -> None:
    """Tags are no properties, whatever their bytes are one after the other."""
    held = Held()
    assert held.at("s", Sent(INT, metadata=Metadata((), (("f", "PII"),)))) == (1, 1)
    with pytest.raises(BadSchemaError, match="has the GUID"):
        held.register("s", Sent(INT, metadata=Metadata((("f", ("PII",)),))))


def test_when_rules_come_into_force_makes_no_other_schema() -> None:
    """A GUID does not tell it at all."""
    held = Held()
    assert held.at("s", Sent(INT, rules=RuleSet(enable_at="1"))) == (1, 1)
    assert held.at("s", Sent(INT, rules=RuleSet(enable_at="2"))) == (1, 1)
    assert held.at("t", Sent(INT, rules=RuleSet(enable_at="2"))) == (1, 1)
