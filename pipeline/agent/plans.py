"""The plans that an agent has: of versions of networks, each made once while it is needed. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pipeline.catalog.snapshot import Deployed, VersionId
from pipeline.errors import MedusaError, RefusedError
from pipeline.planner.digest import fragment_digest, same_format
from pipeline.planner.plan import Fragment, Plan

DEPLOY_AGAIN = "`medusa plan` shows the difference; deploy the network again with this version."


@dataclass(frozen=True, slots=True)
class Plans:
    """What is known of the versions that are needed.

    Args:
        made: their plans.
        asked: versions that are being planned.
        failed: why a version could not be planned, when it was tried last.
    """

    made: Mapping[VersionId, Plan] = field(default_factory=dict)
    asked: frozenset[VersionId] = frozenset()
    failed: Mapping[VersionId, MedusaError] = field(default_factory=dict)

    def has_made(self, version: VersionId, plan: Plan) -> "Plans":
        """The same with a plan that was made."""
        failed = {key: error for key, error in self.failed.items() if key != version}
        return Plans({**self.made, version: plan}, self.asked - {version}, failed)

    def has_failed(self, version: VersionId, error: MedusaError) -> "Plans":
        """The same when a version could not be planned."""
        return replace(self, asked=self.asked - {version}, failed={**self.failed, version: error})

    def asking(self, versions: Iterable[VersionId]) -> "Plans":
        """The same when these versions are being planned."""
        return replace(self, asked=self.asked.union(versions))

    def without(self, versions: Iterable[VersionId]) -> "Plans":
        """The same without what is known of versions that nobody needs."""
        gone = frozenset(versions)
        return Plans(
            {key: plan for key, plan in self.made.items() if key not in gone},
            self.asked,
            {key: error for key, error in self.failed.items() if key not in gone},
        )

    @property
    def known(self) -> frozenset[VersionId]:
        """The versions of which something is known."""
        return frozenset(self.made) | frozenset(self.failed)

    def named(self, deployed: Deployed) -> Fragment | None:
        """The fragment of that name in the plan of its version; None if there is none (yet)."""
        plan = self.made.get(deployed.version)
        fragments = () if plan is None else plan.fragments
        return next((one for one in fragments if one.name == deployed.record.fragment), None)

    def fragment(self, deployed: Deployed) -> Fragment | RefusedError | None:
        """The plan of a fragment, if that is the plan which its record names by a digest.

        Digests of two formats cannot be compared: such a fragment starts, and builds its state from
        the log.

        Returns:
            The plan; an error if it is another plan, or has no such fragment; None if its version
            has no plan yet.
        """
        if deployed.version not in self.made:
            return None
        record, found = deployed.record, self.named(deployed)
        if found is None:
            return _another_plan(deployed, "has no such fragment")
        digest = fragment_digest(found)
        if same_format(digest, record.digest) and digest != record.digest:
            differs = f"differs from what was deployed (digest {digest}, deployed {record.digest})"
            return _another_plan(deployed, differs)
        return found


def _another_plan(deployed: Deployed, problem: str) -> RefusedError:
    return RefusedError(
        f"the plan that this version of Medusa makes of version {deployed.record.version} of the "
        f"network {problem}",
        place=deployed.place,
        hint=DEPLOY_AGAIN,
    )
