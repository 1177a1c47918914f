from collections.abc import Callable

from pipeline.ids import ParticipantId
from pipeline.network.drawing.picture import DrawnBox, Inflow, Part, picture
from pipeline.network.model import Network


def test_an_unread_box_ends_in_its_own_topic(load_text: Callable[[str], Network]) -> None:
    """An output ends in the chosen topic, whether it is read or not."""
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
    assert picture(network, ParticipantId("us")).parts == (
        Part(
            (Inflow("s", "cars"), Inflow("u", "unused")),
            (
                DrawnBox("b", "filter", ("s",), ("out",)),
                DrawnBox("c", "filter", ("b",), ("us.n.c",)),
            ),
        ),
    )
