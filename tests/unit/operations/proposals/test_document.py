import doctest
import re
from dataclasses import replace

import pytest

from pipeline import durations
from pipeline.ids import Subject, TopicName
from pipeline.names import NAME_PATTERN
from pipeline.network.avro_types import to_avro
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.document import SchemaText, load, schema_references
from pipeline.network.model import Network
from pipeline.network.types import Column, Columns, Scalar
from pipeline.operations.proposals import document as proposals
from pipeline.operations.proposals.document import (
    Subscribed,
    document,
    idle_after_ms,
    lateness_ms,
    stream_name,
)
from pipeline.operations.proposals.measurements import Disorder, Measurements, measure

COLUMNS: Columns = (
    Column("symbol", Scalar.STRING, nullable=False),
    Column("at", Scalar.TIMESTAMP, nullable=False),
)
EMPTY = measure(COLUMNS, (), None)


def _loaded(found: Measurements, topic: str = "trades", columns: Columns = COLUMNS) -> Network:
    text = document(Subscribed(TopicName(topic), Subject(f"{topic}-value"), 3, columns), found)
    known = SchemaText(to_avro(columns, "Record", ""), "the registry")
    return load(text, "network.yaml", dict.fromkeys(schema_references(text, ""), known))


def _text(found: Measurements) -> str:
    about = Subscribed(TopicName("trades"), Subject("trades-value"), 3, COLUMNS)
    return " ".join(document(about, found).replace("#", " ").split())


def test_doctests() -> None:
    """The examples in the docstrings."""
    found = doctest.testmod(proposals)
    assert (found.failed, found.attempted > 0) == (0, True)


def test_the_document_is_a_network_with_a_box_that_runs() -> None:
    """It counts by the key of the records."""
    found = replace(
        EMPTY, records=9, key="symbol", disorder=Disorder(9, 3_000, 7_000), gap_ms=200_000
    )
    network = _loaded(found)
    (stream,) = network.streams
    assert (stream.topic, stream.lateness_ms, stream.idle_after_ms) == ("trades", 5_000, 300_000)
    assert stream.event_time.text == "at"
    (box,) = network.boxes
    assert isinstance(box, Aggregate)
    assert box.key == ("symbol",)
    text = _text(found)
    assert "99.9 % were at most 3s behind the newest one before them" in text
    assert "the farthest 7s. These are few" in text
    assert "between two records of a partition was 3m 20s" in text


def test_for_an_empty_topic_all_proposals_are_defaults() -> None:
    """The comments say so."""
    _loaded(EMPTY)
    text = _text(EMPTY)
    assert "The topic holds no records yet, so nothing was measured" in text
    assert "lateness: 5s" in text
    assert "idle_after: 3m" in text
    assert "by: []" in text


@pytest.mark.parametrize("topic", ["true", "1.5", "Prod.Trades-v2", "_", "x" * 200, "null", "a_b"])
def test_every_topic_makes_good_names(topic: str) -> None:
    """Names of networks, streams and boxes are short, of lower-case letters, digits and _."""
    network = _loaded(EMPTY, topic)
    assert [stream.topic for stream in network.streams] == [topic]
    assert re.fullmatch(NAME_PATTERN, stream_name(TopicName(topic)))


@pytest.mark.parametrize("name", ["select", "on", "records", "window_end", "Symbol", "_x"])
def test_every_column_can_be_the_key(name: str) -> None:
    """Also words of SQL and of YAML; the name of a window's column is not used."""
    columns = (Column(name, Scalar.STRING, nullable=False), COLUMNS[1])
    _loaded(replace(EMPTY, key=name), columns=columns)


def test_every_expression_is_parsed_to_the_same_text() -> None:
    """Also with quotes and colons."""
    for expression in (
        "`at`",
        "timestamp_millis(unix_millis(at))",
        "coalesce(at, TIMESTAMP '2024-01-01 00:00:00')",
    ):
        given = replace(EMPTY, event_time=replace(EMPTY.event_time, expression=expression))
        (stream,) = _loaded(given).streams
        assert stream.event_time.text == expression


def test_lateness_is_rounded_and_for_few_records_at_least_the_default() -> None:
    """Without records it is the default."""
    found = [Disorder(2_000, ms, 99_999) for ms in (0, 1_400, 61_000)]
    assert [durations.format(lateness_ms(one)) for one in (None, *found)] == [
        "5s",
        "1s",
        "2s",
        "2m",
    ]
    assert durations.format(lateness_ms(Disorder(10, 0, 0))) == "5s"


def test_idle_after_is_at_most_ten_minutes() -> None:
    """The comment contains longer gaps."""
    assert [durations.format(idle_after_ms(ms)) for ms in (None, 50, 200_000, 9_999_999)] == [
        "3m", "3m", "5m", "10m",
    ]  # fmt: skip
    assert "silent for longer than this" in _text(replace(EMPTY, gap_ms=9_999_999))


def test_ahead_includes_event_times_far_beyond_kafkas() -> None:
    """Else every such record would become a dead letter."""
    (stream,) = _loaded(replace(EMPTY, records=1, ahead_ms=3 * 3_600_000)).streams
    assert stream.ahead_ms == durations.parse("6h")
