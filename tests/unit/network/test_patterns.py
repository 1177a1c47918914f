"""Patterns that Spark would only look at when the query runs."""

import pytest

from pipeline.network.patterns import check_like, check_regex, check_time_format
from pipeline.network.term import FaultError


@pytest.mark.parametrize(
    ("pattern", "groups"),
    [("a+", 0), (r"^(\d{1,3})-([A-Z]*)$", 2), (r"(?i)x|y", 0), (r"\{x\}", 0), (r"[^a-z\]]", 0)],
)
def test_ordinary_regular_expressions_pass(pattern: str, groups: int) -> None:
    """What Java and Python read alike; the groups are counted."""
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
def test_what_java_might_refuse_is_refused(pattern: str) -> None:
    """A pattern that stops the query must not get there."""
    with pytest.raises(FaultError):
        check_regex(pattern)


@pytest.mark.parametrize(("pattern", "escape"), [("a%", "\\"), ("a\\%", "\\"), ("a!_!!", "!")])
def test_like_patterns_pass(pattern: str, escape: str) -> None:
    """An escape stands before %, _ or itself."""
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
    """The letters that mean the same for reading and writing."""
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
