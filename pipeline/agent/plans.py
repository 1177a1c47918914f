"""The plans of an agent: one per needed network version, each computed once. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pipeline.catalog.snapshot import Deployed, VersionId
from pipeline.errors import MedusaError, RefusedError
from pipeline.ids import FragmentName
from pipeline.planner.digest import fragment_digest, same_format
from pipeline.planner.plan import Fragment, Plan

DEPLOY_AGAIN = "`medusa plan` shows the difference; deploy the network again with this version."


@dataclass(frozen=True, slots=True)
class Plans:
    """Planning results of the needed versions.

    Args:
        made: plans by version.
        pending: versions that are being planned.
        failed: the last planning error by version.
        digests: of the fragments of each plan, which every decision compares.
    """

    made: Mapping[VersionId, Plan] = field(default_factory=dict)
    pending: frozenset[VersionId] = frozenset()
    failed: Mapping[VersionId, MedusaError] = field(default_factory=dict)
    digests: Mapping[VersionId, Mapping[FragmentName, str]] = field(default_factory=dict)

    def with_plan(self, version: VersionId, plan: Plan) -> "Plans":
        """A copy with a finished plan."""
        failed = {key: error for key, error in self.failed.items() if key != version}
        digests = {one.name: fragment_digest(one) for one in plan.fragments}
        return Plans(
            {**self.made, version: plan},
            self.pending - {version},
            failed,
            {**self.digests, version: digests},
        )

    def with_failure(self, version: VersionId, error: MedusaError) -> "Plans":
        """A copy with a planning error."""
        pending, failed = self.pending - {version}, {**self.failed, version: error}
        return replace(self, pending=pending, failed=failed)

    def with_pending(self, versions: Iterable[VersionId]) -> "Plans":
        """A copy with these versions pending."""
        return replace(self, pending=self.pending.union(versions))

    def without(self, versions: Iterable[VersionId]) -> "Plans":
        """A copy without versions that are no longer needed."""
        gone = frozenset(versions)
        return Plans(
            {key: plan for key, plan in self.made.items() if key not in gone},
            self.pending,
            {key: error for key, error in self.failed.items() if key not in gone},
            {key: digests for key, digests in self.digests.items() if key not in gone},
        )

    @property
    def versions(self) -> frozenset[VersionId]:
        """The versions with a plan or an error."""
        return frozenset(self.made) | frozenset(self.failed)

    def named(self, deployed: Deployed) -> Fragment | None:
        """The fragment of that name in the plan of its version; None if there is none (yet)."""
        plan = self.made.get(deployed.version)
        fragments = () if plan is None else plan.fragments
        return next((one for one in fragments if one.name == deployed.record.fragment), None)

    def fragment(self, deployed: Deployed) -> Fragment | RefusedError | None:
        """The plan of a fragment, if its digest equals the one in the fragment's record.

        Digests of two formats cannot be compared: such a fragment starts, and rebuilds its state
        from the log.

        Returns:
            The plan; an error if it is another plan, or has no such fragment; None if its version
            has no plan yet.
        """
        if deployed.version not in self.made:
            return None
        record, found = deployed.record, self.named(deployed)
        if found is None:
            return _another_plan(deployed, "has no such fragment")
        digest = self.digests[deployed.version][found.name]
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
