"""The pause of a moved fragment."""

from dataclasses import replace

from pipeline.examples.moving import pause_after_ms, pauses_ms
from pipeline.ids import Epoch, Millis
from pipeline.markers.commit_marker import CommitMarker
from tests.unit.lanes.start.test_decision import marker


def at(batch: int, written_ms: int, epoch: int = 1) -> CommitMarker:
    """The marker of a batch, and when it was written."""
    return replace(marker(batch), epoch=Epoch(epoch), written_at_ms=Millis(written_ms))


def test_the_pause_is_between_two_batches_of_two_owners() -> None:
    """Copies of a marker read nothing; slow batches of one owner are no pause."""
    markers = (
        at(1, 1_000),
        at(2, 9_000),
        at(2, 9_000, epoch=2),
        at(3, 9_700, epoch=2),
        at(4, 30_000, epoch=2),
    )
    assert pauses_ms(markers) == {2: 700}
    three = (*markers, at(5, 31_200, epoch=3))
    assert pauses_ms(three) == {2: 700, 3: 1_200}
    found = [pause_after_ms(three, Epoch(epoch)) for epoch in (1, 2, 3)]
    assert found == [700, 1_200, None]


def test_without_another_owner_there_is_no_pause() -> None:
    """Or if its markers are not there any more."""
    assert pauses_ms(()) == {}
    assert pauses_ms((at(1, 0), at(2, 5))) == {}
    assert pause_after_ms((), Epoch(1)) is None
