"""Deploy id: the life and the version of a network."""

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
        """Whether it is a later version of the same life; different lives are not comparable."""
        return self.life == other.life and self.version > other.version


NO_DEPLOY = DeployId(NetworkLife(""), NO_VERSION)
"""No deploy."""
