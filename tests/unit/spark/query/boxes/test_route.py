from pipeline.spark.query.boxes.route import lower, lower_branch
from pipeline.spark.query.lowered import Keep, Project
from tests.unit.planner.networks import column, expression, external, failing, routed

ORDERS = external("orders", column("a"))
PASSED = (("a", "`a`"), ("at", "`at`"))


def test_a_route_names_the_first_branch_whose_condition_is_true() -> None:
    """In an additional column; rows without a branch are dropped, if there is no `otherwise`."""
    to = {"big": expression("`a` > 9"), "small": expression("`a` > 1")}
    route, _ = routed("r", ORDERS, to)
    named = "CASE WHEN `a` > 9 THEN 'big' WHEN `a` > 1 THEN 'small' ELSE NULL END"
    assert lower(route) == (
        Project((*PASSED, ("__branch", named)), ()),
        Keep("`__branch` IS NOT NULL", ()),
    )
    route, _ = routed("r", ORDERS, to, "rest")
    (only,) = lower(route)
    assert isinstance(only, Project)
    assert only.columns[-1][1].endswith("ELSE 'rest' END")


def test_a_condition_fails_only_where_none_before_it_is_true() -> None:
    """As the branches of a CASE do."""
    to = {"big": failing(expression("`a` > 9")), "small": failing(expression("`a` > 1"))}
    noted = lower(routed("r", ORDERS, to, "rest")[0])[0]
    assert [check.failed for check in noted.checks] == [
        "(false)",
        "NOT coalesce(`a` > 9, false) AND (false)",
    ]


def test_a_branch_keeps_its_rows() -> None:
    """And drops the column that names it."""
    _, (big,) = routed("r", ORDERS, {"big": expression("`a` > 9")})
    assert lower_branch(big) == (Keep("`__branch` = 'big'", ()), Project(PASSED, ()))
