"""Age of an agent's last decision."""

from pipeline.heartbeats.pulse import Pulse
from tests.unit.deploy.twins import TwinClock


def test_the_age_is_that_of_the_last_decision() -> None:
    """Before the first one, the time since the pulse was made."""
    clock = TwinClock()
    pulse = Pulse(clock)
    clock.sleep(2.0)
    assert pulse.age_ms() == 2_000
    pulse.beat()
    assert pulse.age_ms() == 0
    clock.sleep(0.5)
    assert pulse.age_ms() == 500
