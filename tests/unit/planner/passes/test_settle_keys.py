from pipeline.network.model import Box, Network
from pipeline.planner.boxes.catalogue import with_key
from pipeline.planner.draft import Draft
from pipeline.planner.passes.settle_keys import settle_keys
from pipeline.planner.planner import plan
from tests.unit.planner.networks import (
    OWNER,
    aggregated,
    column,
    deduplicated,
    external,
    filtered,
    mapped,
    network,
    united,
)

SOURCE = external("s", column("a"), column("b"))
SUMS = aggregated("sums", SOURCE, {"g": "`a`"}, {"n": ("sum", "`b`")})


def _keyless(box: Box) -> Box:
    return with_key(box, ())


def _network(*boxes: Box) -> Network:
    return network((SOURCE,), boxes)


def test_key_is_named_where_its_columns_are_preserved() -> None:
    """A filter has its input's key, a map under the new names, transitively."""
    few = _keyless(filtered("few", SUMS, "`n` > 1"))
    renamed = mapped("renamed", few, {"x": "`g`", "y": "`n` + 1"})
    settled = settle_keys(Draft(OWNER, _network(SUMS, few, renamed))).network
    assert [box.key for box in settled.boxes] == [("g",), ("g",), ("x",)]
    (fragment,) = plan(_network(SUMS, few, renamed), OWNER).fragments
    assert fragment.output.key == ("x",)


def test_declared_key_stays() -> None:
    """The document's declaration takes precedence."""
    few = with_key(filtered("few", SUMS, "`n` > 1"), ("n",))
    settled = settle_keys(Draft(OWNER, _network(SUMS, few))).network
    assert settled.boxes[1].key == ("n",)


def test_key_bytes_of_a_source_are_passed() -> None:
    """An external key is bytes, and is passed as such without a topic between."""
    few = filtered("few", SOURCE, "`a` > 1")
    renamed = mapped("renamed", few, {"x": "`b`"})
    (fragment,) = plan(_network(few, renamed), OWNER).fragments
    assert fragment.output.key == ()
    assert fragment.output.key_schema_json is None


def test_a_deduplication_has_the_key_of_its_input() -> None:
    """Its rows are the input's, though it keeps state."""
    once = _keyless(deduplicated("once", SUMS, ("g",), 5))
    settled = settle_keys(Draft(OWNER, _network(SUMS, once))).network
    assert settled.boxes[1].key == ("g",)
    (fragment,) = plan(_network(deduplicated("once", SOURCE, ("a",), 5)), OWNER).fragments
    assert fragment.output.key == ()


def test_a_union_has_the_key_that_all_its_inputs_have() -> None:
    """Where they differ, each record keeps its key bytes, so those are read from topics."""
    few = _keyless(filtered("few", SUMS, "`n` > 1"))
    same = united("same", SUMS, few)
    settled = settle_keys(Draft(OWNER, _network(SUMS, few, same))).network
    assert settled.boxes[-1].key == ("g",)
    part = filtered("part", SOURCE, "`a` > 1")
    other = with_key(filtered("other", SOURCE, "`b` > 1"), ("b",))
    first, second = plan(_network(part, other, united("mixed", part, other)), OWNER).fragments
    assert (first.name, first.output.key) == ("other", ("b",))
    assert (second.name, second.output.key) == ("mixed", ())
    assert second.inputs == (SOURCE, first.output)


def test_a_key_that_is_not_preserved_is_read_from_a_topic() -> None:
    """A map that drops a key column passes on the key's bytes, which exist in a topic only."""
    dropped = mapped("dropped", SUMS, {"n": "`n`"})
    first, second = plan(_network(SUMS, dropped), OWNER).fragments
    assert first.output.key == ("g",)
    assert second.inputs == (first.output,)
    assert second.output.key == ()
