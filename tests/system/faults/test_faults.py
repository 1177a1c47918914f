"""A short selection; the whole matrix runs with `python -m tests.faults.run`."""

import pytest

from tests.system.faults.conftest import Strike

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]


def test_kill_9_of_the_node_and_of_its_java_process(strike: Strike) -> None:
    """In the middle of a batch, right after a commit, Java alone: windows and pairs are exact."""
    strike(["window", "join"], ["kill_node_in_batch", "kill_node_after_marker", "kill_jvm"])


def test_a_checkpoint_that_is_lost_or_comes_back_from_before(strike: Strike) -> None:
    """State is rebuilt from the log, also when the node is killed again while it does so."""
    strike(
        ["union_window"], ["checkpoint_deleted_twice", "checkpoint_older", "checkpoint_truncated"]
    )


def test_a_zombie_does_not_write_one_record(strike: Strike) -> None:
    """Stopped for longer than its session, replaced, and then let go on."""
    strike(["window"], ["zombie"])


def test_servers_that_are_killed(strike: Strike) -> None:
    """The broker and the catalog, one after the other, while records without a window flow."""
    strike(["map", "union", "python"], ["kill_broker", "kill_zookeeper", "registry_down"])


def test_a_wall_clock_that_jumps_by_hours(strike: Strike) -> None:
    """The node's and the producers': nothing idles early, is late, or stands still."""
    strike(["window_idle", "window_clocks"], ["clock_jumps"])


def test_the_toll_network(strike: Strike) -> None:
    """Three fragments that depend on one another, as their users have them."""
    strike(["tolls"], ["kill_node"])
