"""Loads as `medusa status` and `medusa node list` print them: text and data. Pure."""

from decimal import Decimal

from pipeline.catalog.load_records import FragmentLoad, NodeLoadRecord
from pipeline.clock import rfc3339
from schemas.json_value import JsonObject

_UNKNOWN = "-"


def load_text(load: FragmentLoad | None) -> str:
    """Load units in each second, as in a table."""
    return _UNKNOWN if load is None else _tenths(load.total)


def load_data(load: FragmentLoad | None) -> JsonObject | None:
    """Data of a fragment's load; None: it was not metered."""
    if load is None:
        return None
    return {
        "units_per_s": _number(load.total),
        "planning": _number(load.planning),
        "tasks": _number(load.tasks),
        "writing": _number(load.writing),
        "functions": _number(load.functions),
        "shared": _number(load.shared),
        "records_in_per_s": load.records_in,
        "records_out_per_s": load.records_out,
        "bytes_in_per_s": load.bytes_in,
        "bytes_out_per_s": load.bytes_out,
        "units_charged": _number(load.charged),
    }


def node_load_text(load: NodeLoadRecord | None) -> str:
    """Load of a node, of what its cores can do."""
    if load is None:
        return _UNKNOWN
    return f"{_tenths(load.total)} of {load.cores * load.core_permille / 10:.0f}"


def node_load_data(load: NodeLoadRecord | None) -> JsonObject | None:
    """Data of a node's load; None: it has not metered it."""
    if load is None:
        return None
    return {
        "units_per_s": _number(load.total),
        "overhead": _number(load.overhead),
        "metering": _number(load.metering),
        "units_overhead": _number(load.overhead_charged),
        "core": load.core_permille / 1_000,
        "cores": load.cores,
        "at": rfc3339(load.at_ms),
        "span_ms": load.span_ms,
        "fragments": [
            {"network": one.network.full_name, "fragment": one.fragment, **(load_data(one) or {})}
            for one in load.fragments
        ],
    }


def _tenths(milli: int) -> str:
    return f"{milli / 1_000:.1f}"


def _number(milli: int) -> float:
    """Thousandths as a number."""
    return float(Decimal(milli).scaleb(-3))
