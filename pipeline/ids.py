"""Distinct types for distinct names and numbers, so that one cannot be taken for another."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NewType

ParticipantId = NewType("ParticipantId", str)
NodeId = NewType("NodeId", str)
NetworkName = NewType("NetworkName", str)
NetworkLife = NewType("NetworkLife", str)
"""Identity of a network from its first deploy until it is destroyed."""
StreamName = NewType("StreamName", str)
"""The name of a logical arrow: an external stream's name, or the name of the box that writes it."""
BoxName = NewType("BoxName", str)
FragmentName = NewType("FragmentName", str)
ConnectorName = NewType("ConnectorName", str)
TopicName = NewType("TopicName", str)
TopicId = NewType("TopicId", str)
"""Kafka's id of a topic: another one when a topic is deleted and created again."""
SourceId = NewType("SourceId", str)
"""`<topic id>/<number>`: one source of a fragment over a topic, whatever its stream is called."""
GroupName = NewType("GroupName", str)
TransactionalId = NewType("TransactionalId", str)
ZnodePath = NewType("ZnodePath", str)
Subject = NewType("Subject", str)
SchemaId = NewType("SchemaId", int)
SchemaGuid = NewType("SchemaGuid", str)
"""Made of a schema's content, so the same in every registry; written as a UUID is."""
SchemaHandle = SchemaId | SchemaGuid
"""What a record names its schema by."""
SchemaVersion = NewType("SchemaVersion", int)
Epoch = NewType("Epoch", int)
"""The number of an ownership of a fragment; each claim raises it. The first is 1."""
NO_EPOCH: Final = Epoch(0)
"""Of a fragment or lane that never had one."""
RunNumber = NewType("RunNumber", int)
"""The number of a start of a lane on its node, from 1; it counts on for as long as the node's
process lives, so that an event of an earlier run cannot be taken for one of the present run."""
NO_RUN: Final = RunNumber(0)
"""Of a lane that was never started."""
Incarnation = NewType("Incarnation", str)
"""One life of a lane; ends when the lane starts from anything but its own untouched checkpoint."""
BatchId = NewType("BatchId", int)
NetworkVersion = NewType("NetworkVersion", int)
"""Counts up from 1, within a network's life, with every deploy that changed something."""
NO_VERSION: Final = NetworkVersion(0)
"""Before any deploy."""
Offset = NewType("Offset", int)
"""A position in a partition: the next offset to read."""
Millis = NewType("Millis", int)
"""A point in event time or wall time: milliseconds since 1970-01-01T00:00:00Z."""
SteadyMillis = NewType("SteadyMillis", int)
"""A point in steady time: milliseconds on a clock that nobody sets. Each process has its own, so
only differences mean anything."""


@dataclass(frozen=True, slots=True, order=True)
class NetworkId:
    """A network of a participant; several participants may use one name.

    As text only the name, as users of that participant write it: no key is made of it.
    """

    participant: ParticipantId
    name: NetworkName

    def __str__(self) -> str:
        return self.name

    @property
    def full_name(self) -> str:
        """`participant.network`: its name among those of all participants."""
        return f"{self.participant}.{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class FragmentId:
    """A fragment, wherever it runs; as text `network.fragment`, as users write it."""

    network: NetworkId
    fragment: FragmentName

    def __str__(self) -> str:
        return f"{self.network}.{self.fragment}"


class LaneRole(StrEnum):
    """What a lane is for."""

    STABLE = "stable"
    """Complete and exact; it writes the fragment's output."""
    FOLLOWER = "follower"
    """Repeats the batches of the stable lane on another node, and writes nothing."""


@dataclass(frozen=True, slots=True, order=True)
class LaneId:
    """A lane: the key of everything that runs; as text `network.fragment stable-0`.

    Args:
        fragment: what it runs.
        role: what it is for.
        number: which of the fragment's lanes in that role, from 0.
    """

    fragment: FragmentId
    role: LaneRole
    number: int = 0

    def __str__(self) -> str:
        return f"{self.fragment} {self.name}"

    @property
    def name(self) -> str:
        """Which of the fragment's lanes: `stable-0`."""
        return f"{self.role}-{self.number}"


def stable_lane(fragment: FragmentId) -> LaneId:
    """The lane that writes a fragment's output."""
    return LaneId(fragment, LaneRole.STABLE)
