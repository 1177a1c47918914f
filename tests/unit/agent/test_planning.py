"""Reading a version of a network from the catalog and planning it."""

import pytest

from pipeline.agent.planning import Planning
from pipeline.catalog.records import NetworkVersionRecord
from pipeline.catalog.snapshot import VersionId
from pipeline.errors import DocumentError, Problem, RefusedError, RetryError
from pipeline.ids import Millis, NetworkVersion
from pipeline.planner.plan import Plan
from tests.unit.agent.support import LIFE, NETWORK, PLAN

ONE = VersionId(NETWORK, LIFE, NetworkVersion(1))
RECORD = NetworkVersionRecord(NETWORK, NetworkVersion(1), "", (), "digest", Millis(0), ())


def test_a_version_is_planned() -> None:
    """The plan is that of the deploy."""

    def planner(record: NetworkVersionRecord) -> Plan:
        assert record == RECORD
        return PLAN

    assert Planning(lambda _, __: RECORD, planner).plan(ONE) == PLAN


def test_an_unsupported_version_is_refused_with_a_message() -> None:
    """The message contains the problem and the remedy."""

    def planner(_: NetworkVersionRecord) -> Plan:
        raise DocumentError((Problem("there is no such kind of box"),))

    with pytest.raises(RefusedError, match=r"cannot plan version 1 .*no such kind of box") as found:
        Planning(lambda _, __: RECORD, planner).plan(ONE)
    assert "deploy the network again" in (found.value.hint or "")


def test_a_missing_version_is_a_temporary_failure() -> None:
    """The network was destroyed; the next read of the catalog returns what is deployed."""
    with pytest.raises(RetryError, match="version 1 of the network is gone"):
        Planning(lambda _, __: None, lambda _: PLAN).plan(ONE)
