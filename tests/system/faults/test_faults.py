"""A selection of the fault matrix; `make test-all` runs the whole matrix of cases and faults."""

import pytest

from tests.system.faults.conftest import Strike

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

PUBLISHES = 3
"""A seed with which all faults of a missing input last until results are tentative."""


def test_results_are_exact_after_kill_9_during_a_batch(strike: Strike) -> None:
    """The batch is planned in the checkpoint, not committed: every pair is emitted once."""
    strike(["join"], ["kill_node_in_batch"])


def test_results_are_exact_after_loss_of_the_checkpoint(strike: Strike) -> None:
    """State is rebuilt from the log, also when the node is killed during the rebuild."""
    strike(["union_window"], ["checkpoint_deleted_twice"])


def test_a_fenced_zombie_writes_no_record(strike: Strike) -> None:
    """A node is suspended for longer than its session, replaced, and then resumed."""
    strike(["window"], ["zombie"])


def test_results_are_exact_after_kill_9_of_the_servers(strike: Strike) -> None:
    """Kafka and ZooKeeper are killed in turn while a stateless network runs."""
    strike(["map", "union"], ["kill_broker", "kill_zookeeper"])


def test_tentative_results_are_settled_after_kill_9_of_the_owner(strike: Strike) -> None:
    """A partition of the input is away; the owner is killed while results are tentative."""
    report = strike(["window_bounded"], ["input_missing_owner_killed"], seed=PUBLISHES)
    assert all(verdict.tentative for verdict in report.verdicts)


@pytest.mark.second_tier("as test_tentative_results_are_settled_after_kill_9_of_the_owner")
@pytest.mark.parametrize("fault", ["input_missing", "input_missing_taken_over"])
def test_tentative_results_are_settled_whatever_ends_them(strike: Strike, fault: str) -> None:
    """The input is there again, or another node takes over."""
    report = strike(["window_bounded", "outer_join_bounded"], [fault], seed=PUBLISHES)
    assert sum(verdict.tentative for verdict in report.verdicts)


@pytest.mark.second_tier("test_a_fenced_zombie_writes_no_record, with a suspended node")
@pytest.mark.parametrize(
    "fault", ["owner_cut_from_kafka", "owner_cut_from_zookeeper", "owner_cut_from_both"]
)
def test_results_are_exact_when_the_owner_alone_is_cut_off(strike: Strike, fault: str) -> None:
    """Secondaries take over; what the owner sends late is refused, and it can claim again."""
    strike(["window"], [fault])


@pytest.mark.second_tier("test_takeover_simulation.py deploys another mode in each phase of one")
def test_results_are_exact_when_the_mode_changes_during_a_takeover(strike: Strike) -> None:
    """The owner is killed, and another mode is deployed while its secondary takes over."""
    strike(["window"], ["mode_changed_in_takeover"])
