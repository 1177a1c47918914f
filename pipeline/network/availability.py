"""`availability` of a network, an output or a box: when tentative results are preferred to none."""

from typing import Final

from pipeline.availability import BOUND_LEAST_MS, BOUND_MOST_MS, Availability, Policy
from pipeline.ids import BoxName
from pipeline.network.declared import Declared
from pipeline.network.fields import Fields
from pipeline.yaml_reader import YamlMap

AVAILABILITY: Final = "availability"
_BOUND: Final = "bound"
_POLICY: Final = "policy"
_POLICIES = tuple(one.value for one in Policy)


def read_availability(fields: Fields, of: BoxName | None) -> Declared[Availability]:
    """Read the key `availability`: a bound, or a mapping with one; mistakes are reported.

    Args:
        fields: the entries of the document, the output or the box.
        of: the box, or the box of the output; None: the network.
    """
    node, line = fields.node(AVAILABILITY), fields.line_of(AVAILABILITY)
    if node is None:
        return Declared(of)
    if not isinstance(node, YamlMap):
        bound_ms = _read_bound(fields, AVAILABILITY)
        return Declared(of, Availability(bound_ms) if bound_ms else None, line)
    inner = Fields(node, f"{AVAILABILITY} of {fields.what}", fields.report, fields.box)
    inner.line = line
    inner.required(_BOUND)
    bound_ms = _read_bound(inner, _BOUND)
    policy = Policy(inner.choice(_POLICY, _POLICIES, Policy.PROCESS.value))
    inner.finish()
    return Declared(of, Availability(bound_ms, policy) if bound_ms else None, line)


def _read_bound(fields: Fields, key: str) -> int | None:
    """None: missing, or invalid (reported)."""
    return fields.duration_between(key, low=BOUND_LEAST_MS, high=BOUND_MOST_MS)
