"""The graph as text."""

from collections.abc import Callable

from pipeline.network.model import Network
from pipeline.network.render import as_text


def test_the_toll_network(load_text: Callable[[str], Network], tolls_text: str) -> None:
    """Streams, boxes in the order of the data, topics in brackets; stable text."""
    readers = "average_speed, traffic_volume, moving, stopped, tow_trucks"
    assert as_text(load_text(tolls_text)).split("\n") == [
        "network tolls",
        f"  sightings           [car-sightings]                     -> {readers}",
        "  average_speed       aggregate sightings                 -> tolls",
        "  traffic_volume      aggregate sightings                 -> tolls",
        "  tolls               join average_speed, traffic_volume  -> toll_notifications",
        "  moving              filter sightings                    -> toll_notifications",
        "  toll_notifications  join moving, tolls                  -> [toll-notifications]",
        "  stopped             filter sightings                    -> tow_dispatch",
        "  tow_trucks          filter sightings                    -> tow_dispatch",
        "  tow_dispatch        join stopped, tow_trucks            -> [tow-dispatch]",
    ]


def test_a_box_that_nobody_reads_ends_in_its_own_topic(load_text: Callable[[str], Network]) -> None:
    """And a stream that nobody reads goes nowhere."""
    network = load_text(
        "network: n\n"
        "streams:\n"
        "  s: {topic: cars, schema: a, event_time: seen_at}\n"
        "  u: {topic: unused, schema: a, event_time: seen_at}\n"
        "boxes:\n"
        "  b: {filter: s, where: speed > 0}\n"
        "  c: {filter: b, where: speed > 9}\n"
        "outputs: {b: {topic: out}}\n"
    )
    assert as_text(network).split("\n") == [
        "network n",
        "  s  [cars]    -> b",
        "  u  [unused]",
        "  b  filter s  -> c, [out]",
        "  c  filter b  -> [n.c]",
    ]
