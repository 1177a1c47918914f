"""Entries of the event log: who did what, where, why, and how long it took by parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from pipeline.ids import Millis


class EventKind(StrEnum):
    """Kind of an entry, as it is written."""

    DEPLOYED = "deployed"
    UNDEPLOYED = "undeployed"
    DESTROYED = "destroyed"
    PAUSED = "paused"
    RESUMED = "resumed"
    CLAIMED = "claimed"
    STARTED = "started"
    GAP = "gap"
    TAKEN_OVER = "taken-over"
    FAILED = "failed"
    FENCED = "fenced"
    RELEASED = "released"
    MOVE_ASKED = "move-asked"
    MOVE_CANCELLED = "move-cancelled"
    MOVE_EXPIRED = "move-expired"
    FOLLOWER_LEVEL = "follower-level"
    FOLLOWER_FAILED = "follower-failed"
    TENTATIVE_BEGUN = "tentative-begun"
    TENTATIVE_SETTLED = "tentative-settled"
    TENTATIVE_FAILED = "tentative-failed"
    NODE_UP = "node-up"
    NODE_DOWN = "node-down"
    DRAINED = "drained"
    UNDRAINED = "undrained"
    REDRIVEN = "redriven"
    PURGED = "purged"
    REPLAYED = "replayed"
    CORRECTED = "corrected"
    SCHEMA_REGISTERED = "schema-registered"
    SCHEMA_DELETED = "schema-deleted"
    SCHEMA_SETTING = "schema-setting"
    KEY_CHANGED = "key-changed"
    CONTRACT_SIGNED = "contract-signed"
    ENTRIES_LOST = "entries-lost"


EXPLANATIONS: Mapping[EventKind, str] = MappingProxyType(
    {
        EventKind.DEPLOYED: "A version of a network became its desired state; nodes restart what "
        "has changed.",
        EventKind.UNDEPLOYED: "The fragments of a network stop after their batch; topics, records "
        "and progress remain.",
        EventKind.DESTROYED: "A network was removed, with the topics that it made.",
        EventKind.PAUSED: "The fragments stop after their batch, until they are resumed.",
        EventKind.RESUMED: "The fragments go on where they were paused.",
        EventKind.CLAIMED: "A node became the owner of a fragment, with a new epoch; Kafka "
        "fences earlier owners.",
        EventKind.STARTED: "The query of a fragment is about to execute its first batch; "
        "`since_last_batch` is the time without output until then.",
        EventKind.GAP: "A fragment with `reliability: amnesia` has lost its state, and has begun "
        "without one at the newest records. `omitted` offsets were not read; results above "
        "`since`, the promise before, and up to `until`, in event time, are withheld or "
        "incomplete.",
        EventKind.TAKEN_OVER: "The query of a fragment whose owner was lost has written a batch; "
        "each part is the time since the one before it: `noticed`, since the last heartbeat of the "
        "owner, or since the report of its end; `claimed`; `fenced`, so that the owner can write "
        "nothing more; `first_batch` and `first_result`, committed.",
        EventKind.FAILED: "A lane has ended by an error. It is tried again unless the entry says "
        "that it is given up; a repeated failure with the same error is not logged.",
        EventKind.FENCED: "A lane was ended because another epoch owns its fragment.",
        EventKind.RELEASED: "The owner has ended its lane after a batch and gave the fragment up, "
        "for the node that is to run it.",
        EventKind.MOVE_ASKED: "The target builds the state of a fragment and follows its owner.",
        EventKind.MOVE_CANCELLED: "A move was ended before the target had claimed the fragment.",
        EventKind.MOVE_EXPIRED: "A move was not done within its time limit, and has ended; the "
        "owner goes on.",
        EventKind.FOLLOWER_LEVEL: "A follower has repeated all batches of the owner: the owner "
        "may release the fragment.",
        EventKind.FOLLOWER_FAILED: "A follower was discarded; up to three times in a row the state "
        "is built again from the log.",
        EventKind.TENTATIVE_BEGUN: "A fragment with an availability bound publishes tentative "
        "results beside its output, without what is `missing`; `held_back` is how long the first "
        "of them had been wanted. Its stable results wait as before.",
        EventKind.TENTATIVE_SETTLED: "Stable results have settled all tentative ones. `confirmed` "
        "ones were right, `replaced` ones have another value, `undone` ones do not exist; what a "
        "later fork has replaced is only counted as `published`. `publishing` is how long they "
        "came, `settling` how long it took from then on.",
        EventKind.TENTATIVE_FAILED: "Tentative results could not be computed or published. This is "
        "tried again after a second, later after up to a minute; stable results are not affected. "
        "A repeated failure with the same error is not logged.",
        EventKind.NODE_UP: "A node has registered, and may claim fragments.",
        EventKind.NODE_DOWN: "A node has ended; `why` is the error, if there was one. A killed "
        "node writes no such entry.",
        EventKind.DRAINED: "A node gives up what others may run, and does not claim that.",
        EventKind.UNDRAINED: "A node may claim any fragment again.",
        EventKind.REDRIVEN: "Dead letters were sent to their fragment again.",
        EventKind.PURGED: "Dead letters were removed.",
        EventKind.REPLAYED: "Results were computed again into a topic.",
        EventKind.CORRECTED: "Corrections were written into an output.",
        EventKind.SCHEMA_REGISTERED: "A subject got a schema.",
        EventKind.SCHEMA_DELETED: "Versions of a subject were deleted.",
        EventKind.SCHEMA_SETTING: "The compatibility level or the mode of subjects was changed.",
        EventKind.KEY_CHANGED: "The participant signs contracts with another key from now on.",
        EventKind.CONTRACT_SIGNED: "The participant has signed a `document` of a contract, which "
        "is in the `state` since then.",
        EventKind.ENTRIES_LOST: "A node could not write so many entries: Kafka did not answer, or "
        "the topic could not be written.",
    }
)


_NAMES = frozenset(
    {"fragments", "from", "to", "subject", "subjects", "into", "topics", "contract", "partner"}
)
"""The facts that are names."""
TEXT_MAX: Final = 500
LIST_MAX: Final = 20_000


def one_line(text: str, most: int = TEXT_MAX) -> str:
    """A text without line ends and control characters, limited to so many characters."""
    printable = "".join(one if one.isprintable() else " " for one in text)
    line = " ".join(printable.split())
    return line if len(line) <= most else f"{line[:most]}…"


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An entry of the event log; empty: it does not apply.

    Args:
        at_ms: wall time of its writer.
        kind: an `EventKind`, or one of a later version.
        by: `node n1`, or `user@host`.
        network: its name.
        fragment: its name, without the network.
        node: the node that it is about.
        why: one line.
        facts: further values by name.
        parts_ms: durations by name, in ms.
    """

    at_ms: Millis
    kind: str
    by: str
    network: str = ""
    fragment: str = ""
    node: str = ""
    why: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    parts_ms: tuple[tuple[str, int], ...] = ()

    @property
    def subject(self) -> str:
        """What it is about: `network.fragment`, a network, a node, or the first fact."""
        if self.fragment:
            return f"{self.network}.{self.fragment}"
        first = self.facts[0][1] if self.facts else ""
        return self.network or (f"node {self.node}" if self.node else first)

    @property
    def explanation(self) -> str:
        """What an entry of its kind says; empty for a kind of a later version."""
        known = self.kind in set(EventKind)
        return EXPLANATIONS[EventKind(self.kind)] if known else ""

    def concerns(self, name: str) -> bool:
        """Whether it is about a network, a fragment, `network.fragment`, a node or a subject."""
        names = {self.network, self.fragment, f"{self.network}.{self.fragment}", self.node}
        known = (value for key, value in self.facts if key in _NAMES)
        listed = {one for value in known for one in value.split(",")}
        within = {f"{self.network}.{one}" for one in listed}
        return name in names | listed | within
