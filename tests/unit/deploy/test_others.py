from dataclasses import replace

import pytest

from pipeline.deploy.others import too_impatient, written_topics
from pipeline.ids import TopicName
from pipeline.network.model import ExternalStream, Network, Silence
from pipeline.planner.planner import plan
from tests.unit.planner.networks import OWNER, aggregated, column, external, filtered, network

CARS = replace(external("cars", column("car")), idle_after_ms=180_000, lateness_ms=5_000)
PASSED = filtered("passed", CARS, "`car` > 0")
COUNTED = aggregated("counted", PASSED, {"car": "`car`"}, {"n": ("count", "`car`")})
BOTH = network((CARS,), (PASSED, COUNTED), outputs=("passed", "counted"))
MINUTE_MS = 60_000
WAITS_MS = 180_000 + 5_000 + MINUTE_MS
"""How long after the last car its window is closed: it lasts a minute."""


def silent_ms(of: Network, topic: str) -> int:
    """How long after its last record a topic's last results come."""
    return dict(written_topics(plan(of, OWNER)))[TopicName(topic)].silent_ms


def test_the_last_window_before_a_silence_comes_after_it() -> None:
    """After `idle_after`, the lateness and the window itself; rows that pass come at once."""
    assert silent_ms(BOTH, "counted-out") == WAITS_MS
    assert silent_ms(BOTH, "passed-out") == 0


def test_what_follows_a_window_waits_as_long() -> None:
    """Also without state, and a window more behind one."""
    many = filtered("many", COUNTED, "`n` > 1")
    hours = aggregated("hours", COUNTED, {}, {"all": ("sum", "`n`")})
    found = network((CARS,), (PASSED, COUNTED, many, hours), outputs=("counted", "many", "hours"))
    assert silent_ms(found, "many-out") == WAITS_MS
    assert silent_ms(found, "hours-out") == WAITS_MS + MINUTE_MS


@pytest.mark.parametrize(
    ("idle_after_ms", "silence", "count"),
    [
        (WAITS_MS, Silence.IDLE, 1),
        (WAITS_MS + 1, Silence.IDLE, 0),
        (1_000, Silence.MISSING, 0),
    ],
)
def test_a_stream_that_is_idle_before_those_results_come_is_warned_of(
    idle_after_ms: int, silence: Silence, count: int
) -> None:
    """It reads the output as the topic of an external stream, and they would be late."""
    taken = dict(written_topics(plan(BOTH, OWNER)))
    stream: ExternalStream = replace(
        external("counts", column("n")),
        topic=TopicName("counted-out"),
        idle_after_ms=idle_after_ms,
        silence=silence,
    )
    found = list(too_impatient((stream,), taken))
    assert len(found) == count
    for text in found:
        assert text.startswith("stream counts steps aside after 4m 5s, and reads the output of ")
        assert "come 4m 5s after the last record there" in text
    assert list(too_impatient((replace(stream, topic=TopicName("passed-out")),), taken)) == []
