"""Times of an example's network, read from its boxes by name. Pure."""

from dataclasses import dataclass

from pipeline.errors import BrokenInvariantError
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.as_of import AsOf
from pipeline.network.boxes.deduplicate import Deduplicate
from pipeline.network.boxes.join import Join, TimeBound
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.windows import SlidingWindow, TumblingWindow
from pipeline.network.model import Box, Network


@dataclass(frozen=True, slots=True)
class NetworkTimes:
    """Times of a network whose boxes the reference requires by name.

    Each method raises `BrokenInvariantError` if the box is missing or different.
    """

    network: Network

    def box(self, name: str) -> Box | None:
        """The box of a name."""
        return next((box for box in self.network.boxes if box.name == name), None)

    def window(self, name: str) -> TumblingWindow | SlidingWindow:
        """The windows of an aggregate, which have one size and are aligned to the epoch."""
        box = self.box(name)
        window = box.window if isinstance(box, Aggregate) else None
        if not isinstance(window, TumblingWindow | SlidingWindow) or window.offset_ms != 0:
            raise self.other(name)
        return window

    def session(self, name: str) -> SessionWindow:
        """The sessions of an aggregate."""
        box = self.box(name)
        if not isinstance(box, Aggregate) or not isinstance(box.window, SessionWindow):
            raise self.other(name)
        return box.window

    def bound(self, name: str) -> TimeBound:
        """The time bound of a join."""
        box = self.box(name)
        if not isinstance(box, Join):
            raise self.other(name)
        return box.bound

    def within(self, name: str) -> int:
        """The maximum distance of a match, in ms: of a version, or of a repeat."""
        box = self.box(name)
        if not isinstance(box, AsOf | Deduplicate):
            raise self.other(name)
        return box.within_ms

    def other(self, name: str) -> BrokenInvariantError:
        """The error that a box is not as the reference requires."""
        return BrokenInvariantError(
            f"network {self.network.name} is not the one the reference knows: box {name}"
        )
