"""Patterns that Spark would only check when the query runs."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.network.patterns import (
    check_like,
    check_regex,
    check_time_format,
    like_as_regex,
    longest_text,
)
from pipeline.network.term import FaultError


@pytest.mark.parametrize(
    ("pattern", "groups"),
    [("a+", 0), (r"^(\d{1,3})-([A-Z]*)$", 2), (r"(?i)x|y", 0), (r"\{x\}", 0), (r"[^a-z\]]", 0)],
)
def test_ordinary_regular_expressions_pass(pattern: str, groups: int) -> None:
    """Those with equal semantics in Java and Python; the groups are counted."""
    assert check_regex(pattern) == groups


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a{",
        "x{,3}",
        "*",
        "[",
        "(?P<n>a)",
        "(?#c)",
        r"\Z",
        "[a[b]]",
        "[a&&b]",
        r"\y",
        "a" * 2_000,
    ],
)
def test_patterns_that_java_might_refuse_are_refused(pattern: str) -> None:
    """A pattern that stops the query must not get there."""
    with pytest.raises(FaultError):
        check_regex(pattern)


@pytest.mark.parametrize(
    ("pattern", "longest"),
    [
        ("[ab]*c+.*(d|e)", None),
        (r"\(ab\)*", None),
        ("[(a)*]", None),
        ("[])*](a)?", None),
        ("^(a|b)*c$", 3_000),
        ("(ab){2,}", 3_000),
        (r"(\w+\.)+(com|org)", 1_500),
        ("(a|(b|(?:c)))*", 1_000),
    ],
)
def test_a_pattern_that_repeats_a_group_has_a_length_limit(
    pattern: str, longest: int | None
) -> None:
    """The more groups, the shorter: Java recurses for each repetition."""
    check_regex(pattern)
    assert longest_text(pattern) == longest


def like(pattern: str, text: str) -> bool:
    """LIKE without escapes, the simple way."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(pattern[1:], text[at:]) for at in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and like(pattern[1:], text[1:])


@given(st.text("ab.%_", max_size=8), st.text("ab.\n", max_size=8))
def test_many_wildcards_are_equal_to_like(pattern: str, text: str) -> None:
    """As a regular expression that scans the text once."""
    regex = like_as_regex(pattern, "!")
    assert (regex is None) == (pattern.count("%") <= 2)
    if regex is not None:
        found = re.search(regex.replace(r"\z", r"\Z"), text)
        assert (found is not None) == like(pattern, text)


def test_an_escaped_character_is_no_wildcard() -> None:
    """Neither for LIKE nor for the regular expression."""
    assert like_as_regex("a!%b!_c!!%", "!") is None
    regex = like_as_regex("%!%%!_%", "!")
    assert regex is not None
    assert re.search(regex.replace(r"\z", r"\Z"), "a%b_c")
    assert not re.search(regex.replace(r"\z", r"\Z"), "a%bcc")


@pytest.mark.parametrize(("pattern", "escape"), [("a%", "\\"), ("a\\%", "\\"), ("a!_!!", "!")])
def test_like_patterns_pass(pattern: str, escape: str) -> None:
    """An escape precedes %, _ or itself."""
    check_like(pattern, escape)


@pytest.mark.parametrize(("pattern", "escape"), [("a\\b", "\\"), ("a\\", "\\"), ("a", "!!")])
def test_like_patterns_with_stray_escapes_are_refused(pattern: str, escape: str) -> None:
    """Spark raises on them for every row."""
    with pytest.raises(FaultError):
        check_like(pattern, escape)


@pytest.mark.parametrize(
    "pattern", ["yyyy-MM-dd", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "dd/MM/yy[ HH:mm]", "hh:mm a"]
)
def test_time_formats_pass(pattern: str) -> None:
    """The letters with equal semantics for reading and writing."""
    check_time_format(pattern, parsing=True)


@pytest.mark.parametrize(
    "pattern", ["", "yyy", "q", "yyyy-MM-dd{", "[yyyy", "]yyyy[", "'open", "EEE"]
)
def test_other_time_formats_are_refused(pattern: str) -> None:
    """Letters that Spark refuses when the query runs."""
    with pytest.raises(FaultError):
        check_time_format(pattern, parsing=True)


def test_day_names_can_be_written_but_not_read() -> None:
    """Spark formats them and refuses to parse them."""
    check_time_format("EEE dd MMM", parsing=False)
