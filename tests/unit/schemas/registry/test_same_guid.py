"""Different contents with the same GUID."""

import pytest

from schemas.registry.metadata import Metadata, RuleSet
from schemas.registry.prepare import Sent
from schemas.registry.refused import BadSchemaError, NoSchemaError
from tests.unit.schemas.registry.making import INT, RegistryValue, record, to


def test_another_schema_with_the_same_guid_is_refused() -> None:
    """A GUID does not contain where a name ends: of two contents the first one counts."""
    registry = RegistryValue()
    registry.register("yz", record("n.X", "a"))
    registry.register("z", record("n.X", "b"))
    first = registry.register("s", Sent(record("R", "f:n.X"), (to("yz", name="x"),)))
    registry.configure("s", compatibility="NONE")
    for subject in ("s", "t"):
        with pytest.raises(BadSchemaError, match=f"GUID {first.version.guid}, too"):
            registry.register(subject, Sent(record("R", "f:n.X"), (to("z", name="xy"),)))
    with pytest.raises(NoSchemaError):
        registry.lookup("s", Sent(record("R", "f:n.X"), (to("z", name="xy"),)))


def test_equal_bytes_of_different_metadata() -> None:
    """Tags are no properties, even if their concatenated bytes are equal."""
    registry = RegistryValue()
    assert registry.at("s", Sent(INT, metadata=Metadata((), (("f", "PII"),)))) == (1, 1)
    with pytest.raises(BadSchemaError, match="has the GUID"):
        registry.register("s", Sent(INT, metadata=Metadata((("f", ("PII",)),))))


def test_the_activation_of_rules_makes_no_other_schema() -> None:
    """A GUID does not include it."""
    registry = RegistryValue()
    assert registry.at("s", Sent(INT, rules=RuleSet(enable_at="1"))) == (1, 1)
    assert registry.at("s", Sent(INT, rules=RuleSet(enable_at="2"))) == (1, 1)
    assert registry.at("t", Sent(INT, rules=RuleSet(enable_at="2"))) == (1, 1)
