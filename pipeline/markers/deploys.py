"""Which deploy something was decided by."""

from dataclasses import dataclass

from pipeline.ids import NO_VERSION, NetworkLife, NetworkVersion


@dataclass(frozen=True, slots=True)
class DeployId:
    """A version of a network, in one of its lives."""

    life: NetworkLife
    version: NetworkVersion

    def __str__(self) -> str:
        return f"{self.life}@{self.version}"

    def is_after(self, other: "DeployId") -> bool:
        """Whether it came later in the same life; of two lives nobody can tell."""
        return self.life == other.life and self.version > other.version


NO_DEPLOY = DeployId(NetworkLife(""), NO_VERSION)
"""None that there was."""
