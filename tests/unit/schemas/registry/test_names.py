import pytest

from schemas.registry.names import SubjectName, java_order, may_be_configured, may_hold_schemas


@pytest.mark.parametrize(
    ("text", "context", "subject", "printed"),
    [
        ("s", ".", "s", "s"),
        ("", ".", "", ""),
        (":.:s", ".", "s", "s"),
        (":.:", ".", "", ""),
        (":.", ".", "", ""),
        (":.c:s", ".c", "s", ":.c:s"),
        (":.c:", ".c", "", ":.c:"),
        (":.c", ".c", "", ":.c:"),
        (":.c:a:b", ".c", "a:b", ":.c:a:b"),
        (":.::.c:s", ".c", "s", ":.c:s"),
        (":.::.::.c:s", ".c", "s", ":.c:s"),
        (":.::*:s", "*", "s", ":*:s"),
        (":.:" * 100_000 + "s", ".", "s", "s"),
        (":*:s", "*", "s", ":*:s"),
        (":c:s", ".", ":c:s", ":c:s"),
        (":", ".", ":", ":"),
    ],
)
def test_a_name_is_a_context_and_a_subject(
    text: str, context: str, subject: str, printed: str
) -> None:
    """Every text is a name, and prints in its shortest form."""
    name = SubjectName.parse(text)
    assert (name.context, name.subject, str(name)) == (context, subject, printed)
    assert SubjectName.parse(str(name)) == name


@pytest.mark.parametrize(
    ("of", "text", "found", "told"),
    [
        ("s", "t", "t", "t"),
        ("s", ":.:t", "t", "t"),
        (":.c:s", "t", ":.c:t", ":.c:t"),
        (":.c:s", ":.d:t", ":.d:t", ":.d:t"),
        (":.c:s", ":.:t", "t", ":.:t"),
        ("s", ":.d:t", ":.d:t", ":.d:t"),
    ],
)
def test_a_name_relative_to_another_one(of: str, text: str, found: str, told: str) -> None:
    """A name without a context has that of the other name; printed, it is the same there."""
    name = SubjectName.parse(of)
    assert (str(name.resolve(text)), name.qualified(text)) == (found, told)
    assert name.resolve(name.qualified(text)) == name.resolve(text)


@pytest.mark.parametrize(
    ("text", "holds", "configured"),
    [
        ("s", True, True),
        ("", True, True),
        ("a/b c:ü", True, True),
        ("a\x00", False, False),
        ("a\x9f", False, False),
        (":.c\x7f:s", False, False),
        ("__GLOBAL", False, False),
        (":.c:__EMPTY", False, False),
        (":.__GLOBAL:", False, True),
        (":.__GLOBAL:s", False, True),
        (":*:s", False, True),
        ("__global", True, True),
    ],
)
def test_some_names_are_reserved_for_the_registry(text: str, holds: bool, configured: bool) -> None:  # noqa: FBT001 - of the table
    """Control characters, and the wildcard and empty names."""
    name = SubjectName.parse(text)
    assert (may_hold_schemas(name), may_be_configured(name)) == (holds, configured)


def test_texts_sort_as_java_sorts_them() -> None:
    """By UTF-16: characters beyond U+FFFF come before U+FFFD."""
    assert sorted(["\ufffd", "\U0001f600", "a", "Z"], key=java_order) == [
        "Z",
        "a",
        "\U0001f600",
        "\ufffd",
    ]


def test_the_default_context_has_no_prefix() -> None:
    """Only whole contexts are parsed as a context."""
    assert SubjectName.parse("").is_default
    assert not SubjectName.parse("s").is_default
    assert SubjectName.parse(":.c:s").whole_context == SubjectName.parse(":.c:")
    assert SubjectName.parse("s").prefix == ""
    assert SubjectName.parse(":.c:s").prefix == ":.c:"
