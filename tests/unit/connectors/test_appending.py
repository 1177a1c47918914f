from connectors.appending import REMOVAL, rows_of
from connectors.sink import Batch, Marker, RefusedChange, Removal, Result
from pipeline.ids import Offset, TopicId


def test_removals_are_refused_and_everything_else_is_a_row() -> None:
    """Corrections too; nothing is refused if there is no removal."""
    first = Result({"n": 1}, 0, Offset(0), "a")
    correction = Result({"n": 2}, 0, Offset(1), "a", corrects=True)
    removal = Removal(0, Offset(2), "a")
    marker = Marker(1, TopicId("t"), {0: Offset(3)})
    refused: list[RefusedChange] = []
    rows = [{"n": 1}, {"n": 2}]
    assert rows_of(Batch((first, correction), marker), refused.extend) == rows
    assert refused == []
    assert rows_of(Batch((first, correction, removal), marker), refused.extend) == rows
    assert [(one.change, one.reason) for one in refused] == [(removal, REMOVAL)]
