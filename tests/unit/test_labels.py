"""Labels and selectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.labels import (
    EVERY_NODE,
    Requirement,
    format_selector,
    parse_labels,
    parse_selector,
    selects,
)

words = st.sampled_from(["a", "b", "zone", "disk", "x-1", "v1.2"])
requirements = st.builds(
    lambda key, values, negated: Requirement(key, tuple(sorted(values)), negated and bool(values)),
    words,
    st.frozensets(words, max_size=3),
    st.booleans(),
)


def test_labels_are_sorted_and_spaces_are_ignored() -> None:
    """An empty text has none."""
    assert parse_labels(" zone=a , disk=ssd") == (("disk", "ssd"), ("zone", "a"))
    assert parse_labels("") == ()


@pytest.mark.parametrize("text", ["zone", "zone=", "=a", "zone=a b", "zone=a,zone=b", "a=b=c"])
def test_other_labels_are_refused(text: str) -> None:
    """With what is wrong."""
    with pytest.raises(ValueError, match=r"is no label|occurs twice"):
        parse_labels(text)


def test_every_requirement_has_to_be_met() -> None:
    """A node without the label is meant by a negated requirement only."""
    labels = {"zone": "a", "disk": "ssd"}
    for text, found in (
        ("zone=a", True),
        ("zone=a|b", True),
        ("zone=b", False),
        ("zone!=b", True),
        ("zone!=a", False),
        ("gpu!=v1", True),
        ("zone", True),
        ("gpu", False),
        ("zone=a, disk=ssd", True),
        ("zone=a,disk=hdd", False),
    ):
        assert selects(parse_selector(text), labels) is found, text
    assert selects(EVERY_NODE, {})


@pytest.mark.parametrize("text", ["", "zone=", "!zone", "a b", "zone=a|", "zone==a", "zone=a,"])
def test_other_selectors_are_refused(text: str) -> None:
    """With the form that is right."""
    with pytest.raises(ValueError, match="selects no nodes: write KEY=VALUE"):
        parse_selector(text)


@pytest.mark.parametrize("text", ["zone=a,zone=b", "zone=a,zone!=a", "zone=a|b,zone=c"])
def test_a_selector_that_no_node_can_meet_is_refused(text: str) -> None:
    """A label has one value."""
    with pytest.raises(ValueError, match="no node can have both zone"):
        parse_selector(text)


@given(st.frozensets(requirements, min_size=1, max_size=3))
def test_the_text_of_a_selector_is_read_as_the_same(found: frozenset[Requirement]) -> None:
    """Unless it is refused."""
    selector = tuple(sorted(found, key=str))
    try:
        again = parse_selector(format_selector(selector))
    except ValueError as error:
        assert "no node can have both" in str(error)  # noqa: PT017 - only some are refused
    else:
        assert again == selector


@given(st.frozensets(requirements, min_size=1, max_size=4), st.dictionaries(words, words))
def test_a_selector_that_some_node_meets_is_not_refused(
    found: frozenset[Requirement], labels: dict[str, str]
) -> None:
    """What `selects` accepts can be written."""
    selector = tuple(sorted(found, key=str))
    if selects(selector, labels):
        assert parse_selector(format_selector(selector)) == selector
