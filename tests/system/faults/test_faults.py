"""A short selection; `make test-all` runs a turn of the whole matrix of cases and faults."""

import pytest

from tests.system.faults.conftest import Strike

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]


def test_kill_9_of_the_node_in_a_batch(strike: Strike) -> None:
    """Planned in the checkpoint and not committed there: every pair comes once."""
    strike(["join"], ["kill_node_in_batch"])


def test_a_checkpoint_that_is_lost(strike: Strike) -> None:
    """State is rebuilt from the log, also when the node is killed again while it does so."""
    strike(["union_window"], ["checkpoint_deleted_twice"])


def test_a_zombie_does_not_write_one_record(strike: Strike) -> None:
    """Stopped for longer than its session, replaced, and then let go on."""
    strike(["window"], ["zombie"])


def test_servers_that_are_killed(strike: Strike) -> None:
    """The broker and the catalog, one after the other, while records without a window flow."""
    strike(["map", "union"], ["kill_broker", "kill_zookeeper"])
