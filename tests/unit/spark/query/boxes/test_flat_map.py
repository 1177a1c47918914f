from dataclasses import replace

from pipeline.network.model import Computed, Origin
from pipeline.spark.query.boxes.flat_map import lower
from pipeline.spark.query.lowered import Explode, Project
from tests.unit.planner.networks import column, expression, external, failing, flat_mapped

ORDERS = external("orders", column("a"), column("xs"))
ITEMS = flat_mapped("items", ORDERS, "`xs`", {"x": "`item`", "a": "`a` + `a`"})


def test_the_array_has_the_name_of_its_elements_and_is_exploded() -> None:
    """Only the columns of the record that are needed are kept."""
    first, _, explode, last = lower(ITEMS)
    assert first == Project((("a", "`a`"), ("item", "`xs`")), ())
    assert explode == Explode("item", None)
    assert last == Project((("x", "`item`"), ("a", "`a` + `a`")), ())


def test_a_record_with_too_many_elements_fails_at_the_array() -> None:
    """The only possible failure, when no expression can fail."""
    each = Computed("item", replace(ITEMS.each.expression, origin=Origin("items", "each.item")))
    _, judge, *_ = lower(replace(ITEMS, each=each, at_most=7))
    (check,) = judge.checks
    assert check.failed == "coalesce(size(`item`) > 7, false)"
    assert (check.origin.field, check.text) == ("each.item", "xs has more than 7 elements")


def test_a_failure_of_one_element_fails_the_record() -> None:
    """So the expressions are evaluated on all elements before there are rows."""
    computed = Computed("x", replace(failing(expression("`item` + 1")), failed="`item` IS NULL"))
    _, judge, *rest = lower(replace(ITEMS, select=(computed,)))
    assert judge.checks[1].failed == "coalesce(exists(`item`, `item` -> `item` IS NULL), false)"
    assert [step.checks for step in rest] == [(), ()]


def test_a_failure_may_contain_the_index_of_its_element() -> None:
    """Which is never read of the record."""
    computed = Computed("x", replace(failing(expression("1 / `n`")), failed="`n` = 0"))
    first, judge, explode, _ = lower(replace(ITEMS, select=(computed,), at="n"))
    assert judge.checks[1].failed == (
        "coalesce(exists(transform(`item`, (`item`, `n`) -> `n` = 0), `item` -> `item`), false)"
    )
    assert first == Project((("item", "`xs`"),), ())
    assert explode == Explode("item", "n")
