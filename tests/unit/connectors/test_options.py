from pathlib import Path

import pytest

from connectors.options import checked, duration, one_of, secret, text, texts, whole
from pipeline.errors import InputError
from schemas.json_value import Json


def test_options_are_checked_one_by_one() -> None:
    """Those that are missing or unknown are named."""
    known = {"name": text, "wait": duration}
    assert checked({"name": "a", "wait": "2s"}, known, required=("name",)) == {
        "name": "a",
        "wait": 2_000,
    }
    with pytest.raises(InputError, match="missing"):
        checked({}, known, required=("name",))
    with pytest.raises(InputError, match="no such option"):
        checked({"name": "a", "colour": 1}, known, required=())


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (text, ""),
        (duration, "2"),
        (one_of("a", "b"), "c"),
        (whole(1, 3), 4),
        (whole(0, 3), True),
        (texts, [1]),
    ],
)
def test_wrong_values_are_shown_with_what_was_expected(check: object, value: Json) -> None:
    """At their option."""
    assert callable(check)
    with pytest.raises(InputError, match=" is not ") as found:
        checked({"it": value}, {"it": check}, required=())
    assert found.value.place == "it"


def test_lists_and_secrets(tmp_path: Path) -> None:
    """A list may be one text; a secret is read from where it lies."""
    assert (texts("a"), texts(["a", "b"])) == (("a",), ("a", "b"))
    (tmp_path / "s").write_text("hidden")
    assert secret("password", tmp_path)("${file:s}").reveal() == "hidden"
    with pytest.raises(InputError, match="cannot be read"):
        secret("password", tmp_path)("${file:none}")
