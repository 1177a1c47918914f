from dataclasses import replace

from hypothesis import given, settings

from pipeline.ids import Millis, TopicName
from pipeline.network.model import Limit, Network, StartAt
from pipeline.planner.columns import read_columns
from pipeline.planner.describe import describe, differences, state_differences
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from tests.profiles import examples
from tests.unit.planner.generated import networks
from tests.unit.planner.networks import OWNER, tolls


def _fragments(wanted: Network) -> tuple[Fragment, ...]:
    return plan(wanted, OWNER).fragments


@settings(max_examples=examples(50))
@given(networks())
def test_labels_are_unique(made_up: Network) -> None:
    """Two fragments can be compared label by label."""
    for fragment in _fragments(made_up):
        labels = [label for label, _ in describe(fragment)]
        assert len(labels) == len(set(labels))


def test_differences_name_changes_additions_and_removals() -> None:
    """One line each, removals last."""
    before = _fragments(tolls())[1]
    stream = replace(
        tolls().streams[0],
        topic=TopicName("elsewhere"),
        start=StartAt("time", Millis(0)),
        columns=tolls().streams[0].columns[1:],
    )
    after = replace(before, inputs=(stream, before.inputs[1]))
    assert differences(before, after) == (
        "changed: topic of sightings `sightings-topic` → `elsewhere`",
        "changed: start of sightings `earliest` → `1970-01-01T00:00:00Z`",
        "gone: column car of sightings `STRING NOT NULL`",
    )
    assert differences(after, before)[-1] == "new: column car of sightings `STRING NOT NULL`"
    assert differences(before, before) == ()


def test_differences_of_a_state_exclude_unread_columns() -> None:
    """But include another decoding of columns that are read."""
    before = _fragments(tolls())[0]
    stream = before.inputs[0]
    read = read_columns(stream, before)
    without = tuple(column for column in stream.columns if column.name in read)
    assert without != stream.columns
    less = replace(before, inputs=(replace(stream, columns=without),))
    assert differences(before, less) != ()
    assert state_differences(before, less) == ()
    schema = stream.schema_json.replace('"name":"road"', '"name":"road","doc":"its name"')
    assert schema != stream.schema_json
    other = replace(stream, schema_json=schema.replace('"double"', '"float"'))
    assert other != stream
    assert state_differences(before, replace(before, inputs=(other,))) == (
        "changed: how columns of sightings are decoded: speed",
    )


def test_pace_and_state_limit_are_described_when_set() -> None:
    """As in the document; and they do not belong to the differences of a state."""
    before = _fragments(tolls())[1]
    after = replace(before, pace_ms=500, state_limit_bytes=4 << 30)
    assert differences(before, after) == ("new: pace `500ms`", "new: state_limit `4GiB`")
    assert differences(after, replace(after, pace_ms=60_000)) == ("changed: pace `500ms` → `1m`",)
    assert differences(after, before) == ("gone: pace `500ms`", "gone: state_limit `4GiB`")
    assert state_differences(before, after) == ()


def test_a_limit_of_dead_letters_is_described_in_terms_of_the_document() -> None:
    """With its span, and without."""
    before = _fragments(tolls())[1]
    limited = replace(before, limits=(Limit("sightings", 5), Limit("moving", 0, 60_000)))
    assert differences(before, limited) == (
        "new: dead_letters of sightings `stop above 5`",
        "new: dead_letters of moving `stop above 0 within 1m`",
    )
