"""Earlier retry of lanes that failed for an external cause, once a server answers again."""

from dataclasses import replace

from pipeline.agent.back_off import back_off_ms
from pipeline.agent.events import Event
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import BackingOff, Lane, Shared
from pipeline.ids import SteadyMillis


def retry_soon(lane: Lane, shared: Shared, _: Event, now: Now) -> tuple[Lane, Effects]:
    """Shorten the back-off of a lane that waits for a server."""
    if not shared.answered or not isinstance(lane.phase, BackingOff) or not lane.tries.waits:
        return lane, ()
    soon_ms = SteadyMillis(now.steady_ms + back_off_ms(lane.id.fragment, 1))
    phase = BackingOff(min(lane.phase.retry_at_ms, soon_ms))
    return replace(lane, phase=phase, tries=replace(lane.tries, waits=1)), ()
