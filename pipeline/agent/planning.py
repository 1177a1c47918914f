"""Planning of the network versions in the catalog."""

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.agent.plans import DEPLOY_AGAIN
from pipeline.catalog.records import NetworkVersionRecord
from pipeline.catalog.snapshot import VersionId
from pipeline.errors import DocumentError, RefusedError, RetryError
from pipeline.ids import NetworkId, NetworkVersion
from pipeline.planner.plan import Plan

ReadVersion = Callable[[NetworkId, NetworkVersion], NetworkVersionRecord | None]
Planner = Callable[[NetworkVersionRecord], Plan]


@dataclass(frozen=True, slots=True)
class Planning:
    """Reads and plans network versions.

    Args:
        read: reads a version of a network; None if there is none.
        planner: plans what was read.
    """

    read: ReadVersion
    planner: Planner

    def plan(self, version: VersionId) -> Plan:
        """The plan of a version.

        Raises:
            RefusedError: this version of Medusa cannot plan it.
            RetryError: the network was destroyed meanwhile.
            UnavailableError: the catalog does not answer.
        """
        place = f"network {version.network}"
        record = self.read(version.network, version.version)
        if record is None:
            raise RetryError(f"version {version.version} of the network is gone", place=place)
        try:
            return self.planner(record)
        except DocumentError as error:
            first = error.problems[0].message if error.problems else error.message
            raise RefusedError(
                f"this version of Medusa cannot plan version {version.version} of the network: "
                f"{first}",
                place=place,
                hint=DEPLOY_AGAIN,
            ) from error
