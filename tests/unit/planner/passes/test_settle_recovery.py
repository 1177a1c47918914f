"""Recovery of the fragments of a plan."""

import pytest

from pipeline.errors import DocumentError
from pipeline.ids import TopicName
from pipeline.planner.changes import Current
from pipeline.planner.describe import differences, state_differences
from pipeline.planner.diff import changes
from pipeline.planner.digest import fragment_digest, plan_digest, state_digest
from pipeline.planner.explain import explain
from pipeline.planner.plan import Plan
from pipeline.planner.upgrade import between
from tests.unit.planner.passes.test_share_box_settings import fragment, planned

NET = "reliability: {mode: upstream_backup, recovery: rollback}"
ROLLBACK, PRECISE = (
    f", reliability: {{mode: upstream_backup, recovery: {one}}}" for one in ("rollback", "precise")
)
FOLLOWED = ", reliability: active_standby"
CHAIN = """
  moving: {filter: s, where: speed > 0%s}
  counts: {aggregate: moving, by: [road], compute: {n: count(*)}%s}
"""
TWO = """
  counts: {aggregate: s, by: [road], compute: {n: count(*)}%s}
  sums: {aggregate: counts, by: [road], compute: {n: sum(n)}%s}
"""


def recoveries(of: Plan) -> dict[str, str]:
    """The recovery of each fragment."""
    return {str(one.name): one.recovery.value for one in of.fragments}


@pytest.mark.parametrize(
    ("head", "boxes", "expected"),
    [
        ("", ("", ""), "precise"),
        (NET, ("", ""), "rollback"),
        (NET, (PRECISE, ""), "precise"),
        ("", (ROLLBACK, ""), "rollback"),
        ("", (ROLLBACK, FOLLOWED), "rollback"),
        ("", (ROLLBACK, PRECISE), "precise"),
        (NET, (FOLLOWED, FOLLOWED), "rollback"),
        (f"outputs: {{counts: {{topic: x{ROLLBACK}}}}}", ("", ""), "rollback"),
    ],
)
def test_the_strictest_that_is_declared_counts(
    head: str, boxes: tuple[str, str], expected: str
) -> None:
    """Boxes that declare none do not count; the mode is another matter."""
    found = planned(CHAIN % boxes, head)
    assert recoveries(found) == {"counts": expected}
    followed = any("active" in one for one in boxes)
    assert fragment(found, "counts").reliability.active_standbys == followed
    assert fragment(found, "counts").reliability.recovery is None


def test_that_of_the_network_is_for_what_nobody_reads() -> None:
    """Nor for outputs with corrections."""
    assert recoveries(planned(TWO % ("", ""), NET)) == {"counts": "precise", "sums": "rollback"}
    corrected = f"{NET}\noutputs: {{sums: {{topic: x, corrections: true}}}}"
    assert recoveries(planned(TWO % ("", ""), corrected)) == dict.fromkeys(
        ("counts", "sums"), "precise"
    )


def test_rollback_of_a_stream_that_a_fragment_reads_is_refused() -> None:
    """The error names the readers."""
    for head in ("", NET):
        with pytest.raises(DocumentError) as caught:
            planned(TWO % (ROLLBACK, ""), head)
        (problem,) = caught.value.problems
        assert problem.box == "counts"
        assert "recovery is rollback, but sums of this network reads the results" in problem.message
        assert problem.hint


def test_rollback_of_an_output_with_corrections_is_refused() -> None:
    """A repeat would undo a correction."""
    head = f"outputs: {{sums: {{topic: x, corrections: true{ROLLBACK}}}}}"
    with pytest.raises(DocumentError) as caught:
        planned(TWO % ("", ""), head)
    assert "its output has corrections" in caught.value.problems[0].message


def test_another_recovery_changes_the_fragment_and_not_its_state() -> None:
    """So its lane starts again, and goes on with its state."""
    old, new = planned(CHAIN % ("", "")), planned(CHAIN % ("", ROLLBACK))
    was, now = fragment(old, "counts"), fragment(new, "counts")
    assert fragment_digest(was) != fragment_digest(now)
    assert state_digest(was) == state_digest(now)
    assert plan_digest(old) != plan_digest(new)
    change = "changed: recovery `precise` → `rollback`"
    assert differences(was, now) == (change,)
    assert state_differences(was, now) == ()
    assert [one.reasons for one in between(old, new)] == [(change,)]


def test_precise_leaves_digests_as_they_were() -> None:
    """Written or not."""
    plans = [planned(CHAIN % ("", one)) for one in ("", PRECISE)]
    assert len({plan_digest(one) for one in plans}) == 1


def test_explain_states_guarantee_and_price() -> None:
    """Only if results of the network may come twice; then of each fragment."""
    assert "recovery" not in explain(planned(TWO % ("", "")))
    text = explain(planned(TWO % ("", ""), NET))
    found = text.splitlines()
    why = "precise, since the network reads its results: results are visible with"
    price = "costs a second transaction in each batch, beside its execution"
    exact = "stable records are exact: none lost, none twice, final once written"
    again = (
        "no record is lost; after a failure some may come twice, with one id; final once written"
    )
    for line in (
        f"  recovery     {why} their transaction",
        "  recovery     rollback: results are visible before their transaction",
        f"               {price}",
        f"  guarantees   {exact}",
        f"  guarantees   {again}",
    ):
        assert found.count(line) == 1


def test_a_topic_with_repeats_is_not_read_later() -> None:
    """Neither after a version with rollback, nor once a marker says so; another topic is fine."""
    once = "\n  counts: {aggregate: s, by: [road], compute: {n: count(*)}%s}\n"
    was = planned(once % ROLLBACK, "outputs: {counts: {topic: x}}")
    read = planned(TWO % ("", ""), "outputs: {counts: {topic: x}, sums: {topic: y}}")
    elsewhere = planned(TWO % ("", ""), "outputs: {counts: {topic: z}, sums: {topic: y}}")
    (problem,) = changes(read, was, Current()).problems
    assert (problem.box, "whose topic x was written" in problem.message) == ("sums", True)
    assert "another topic" in problem.hint
    repeated = frozenset({TopicName("x")})
    assert changes(read, read, Current(repeated=repeated)).problems == (problem,)
    assert changes(elsewhere, was, Current(repeated=repeated)).problems == ()
    assert changes(read, read, Current()).problems == ()


def test_a_topic_with_repeats_is_not_corrected_later() -> None:
    """Its results have other ids."""
    once = "\n  counts: {aggregate: s, by: [road], compute: {n: count(*)}%s}\n"
    was = planned(once % ROLLBACK, "outputs: {counts: {topic: x}}")
    corrected = planned(once % "", "outputs: {counts: {topic: x, corrections: true}}")
    (problem,) = changes(corrected, was, Current()).problems
    assert (problem.box, "whose topic" in problem.message) == ("counts", False)
    assert "its topic x was written with recovery rollback" in problem.message
    repeated = frozenset({TopicName("x")})
    assert changes(corrected, corrected, Current(repeated=repeated)).problems == (problem,)
    assert changes(corrected, corrected, Current()).problems == ()
