"""Topological order of boxes."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.network.graph import in_order


def test_inputs_come_first_and_ties_keep_their_order() -> None:
    """A box comes after its inputs, in any order of the document."""
    order, loops = in_order({"c": ["a", "b"], "b": ["s"], "a": ["s"], "d": ["s"]})
    assert order == ("b", "a", "c", "d")
    assert loops == ()


def test_a_loop_is_named_in_the_direction_of_the_data() -> None:
    """Where c reads b reads a reads c, data flows a, b, c, a."""
    order, loops = in_order({"a": ["c"], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["s"]})
    assert order == ("e",)
    assert loops == (("a", "b", "c"),)


def test_a_box_that_reads_itself_is_a_loop() -> None:
    """The shortest loop has one box."""
    assert in_order({"a": ["a"]})[1] == (("a",),)


def test_two_loops_are_both_named() -> None:
    """Each group of boxes that feed each other is reported once."""
    _, loops = in_order({"a": ["b"], "b": ["a"], "c": ["d", "a"], "d": ["c"]})
    assert loops == (("a", "b"), ("c", "d"))


NAMES = st.sampled_from("abcdef")


@given(st.dictionaries(NAMES, st.lists(NAMES, max_size=3)))
def test_every_box_is_ordered_or_has_a_reason(reads: dict[str, list[str]]) -> None:
    """A box missing in the order is on or behind a loop, and loops are real."""
    order, loops = in_order(reads)
    for position, box in enumerate(order):
        assert all(r in order[:position] for r in reads[box] if r in reads)
    assert bool(loops) == (len(order) < len(reads))
    for loop in loops:
        for source, reader in zip(loop, (*loop[1:], loop[0]), strict=True):
            assert source in reads[reader]
