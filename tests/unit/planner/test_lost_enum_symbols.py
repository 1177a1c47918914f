"""A state that was built with an enum symbol does not fit a plan that cannot read it any more."""

from dataclasses import replace

from pipeline.network.types import Scalar
from pipeline.planner.lost_enum_symbols import lost_symbols
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from tests.unit.planner.networks import OWNER, column, deduplicated, external, network


def with_enum(symbols: str, more: str = "") -> Fragment:
    """A fragment that deduplicates by an enum."""
    source = external("s", column("a", Scalar.STRING))
    enum = f'{{"type":"enum","name":"E","symbols":[{symbols}]{more}}}'
    field = f'{{"name":"a","type":{enum}}}'
    text = f'{{"type":"record","name":"R","fields":[{field}]}}'
    source = replace(source, schema_json=text)
    once = deduplicated("once", source, ("a",), 5)
    (found,) = plan(network((source,), (once,), ("once",)), OWNER).fragments
    return found


def test_a_removed_symbol_is_lost() -> None:
    """An added one is not, nor is one of an enum that has a default."""
    x, xy = with_enum('"x"'), with_enum('"x","y"')
    assert lost_symbols(xy, x)
    assert not lost_symbols(x, xy)
    assert not lost_symbols(xy, xy)
    default = ',"default":"x"'
    assert not lost_symbols(with_enum('"x","y"', default), with_enum('"x"', default))
