"""What a takeover would cost, as text and data."""

import json
from pathlib import Path

from pipeline.cli.takeover_view import measured_lines, size_text, takeover_data, takeover_text
from pipeline.event_log.timings import Timing, Timings
from pipeline.ids import Millis, NodeId
from pipeline.operations.status.takeover import TakeoverNow, TakeoverWay
from tests.unit.cli.reports import Caller, deployed
from tests.unit.deploy.twins import NOW, World

N2 = NodeId("n2")
TAKEN = Timing(NOW, "n2", "node n1 is down", (("noticed", 1_000), ("claimed", 500)))
STARTED = Timing(NOW, "n1", "", (("start", 12_000),))


def test_the_text_has_the_way_and_the_last_time() -> None:
    """A takeover says more than a start."""
    both = Timings(TAKEN, STARTED)
    for found, text in (
        (TakeoverNow(TakeoverWay.GOES_ON, N2, timings=both), "n2 goes on; the last took 1.5s"),
        (
            TakeoverNow(TakeoverWay.BUILDS, timings=Timings(None, STARTED)),
            "another node builds the state from the log; the last start took 12.0s",
        ),
        (TakeoverNow(TakeoverWay.STARTS, N2), "n2 starts"),
        (TakeoverNow(TakeoverWay.READS_SINCE, N2, Millis(NOW - 4_000)), "n2 reads the last 4.0s"),
        (
            TakeoverNow(TakeoverWay.READS_SINCE, N2),
            "n2 begins from what it has, nothing is missing",
        ),
    ):
        assert takeover_text(found, NOW) == text


def test_lines_and_data_have_the_parts() -> None:
    """Of the last takeover and the last start."""
    found = TakeoverNow(TakeoverWay.READS_SINCE, N2, NOW, 3 << 20, Timings(TAKEN, STARTED))
    first, size, taken, started = measured_lines(found, NOW)
    assert first == "if its node failed now: n2 reads the last 0s"
    assert size == "state: 3.0 MiB, by the newest copy"
    assert taken.startswith("last takeover: 1.5s on n2, ")
    assert taken.endswith("(noticed 1.0s, claimed 0.5s); node n1 is down")
    assert started.endswith("(start 12.0s)")
    data = takeover_data(found)
    assert data is not None
    assert data["last_takeover"]["parts_ms"] == {"noticed": 1_000, "claimed": 500}  # type: ignore[index,call-overload]
    assert (data["way"], data["state_bytes"]) == ("reads what came since", 3 << 20)
    json.dumps(data)
    assert takeover_data(None) is None
    bare = takeover_data(TakeoverNow(TakeoverWay.STARTS))
    assert bare is not None
    assert (bare["last_takeover"], bare["state_bytes"]) == (None, None)


def test_sizes_are_short() -> None:
    """They were measured, so they are not exact."""
    assert [size_text(n) for n in (12, 1536, 5 << 40)] == ["12 B", "1.5 KiB", "5.0 TiB"]


def test_explain_adds_what_was_measured(medusa: Caller) -> None:
    """Beside the estimate, if it is asked for; and that another plan is deployed."""
    world = World.new()
    connect = deployed(medusa, world)
    text = medusa("explain", "--measured", opener=connect).out
    assert "measured     if its node failed now: another node" in text
    assert "measured" not in medusa("explain", opener=connect).out
    data = medusa("explain", "--measured", "-o", "json", opener=connect).data["fragments"]
    assert {one["measured"]["version"] for one in data} == {1}
    assert "measured" not in medusa("explain", "-o", "json", opener=connect).data["fragments"][0]
    document = Path("network.yaml")
    document.write_text(f"{document.read_text()}\nreliability: active_standby\n")
    other = medusa("explain", "--measured", opener=connect).out
    assert "of version 1, which is another one: upstream_backup" in other


def test_explain_measures_no_network_that_is_not_deployed(medusa: Caller) -> None:
    """Refused, with the usual error."""
    connect = deployed(medusa, World.new())
    document = Path("network.yaml")
    document.write_text(document.read_text().replace("network: cars", "network: vans", 1))
    assert medusa("explain", "--measured", opener=connect).code == 65
