from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.secrets import HIDDEN, Secret, SecretSetting
from pipeline.settings import problem_with


@given(st.text(min_size=1))
def test_a_secret_is_never_printed(value: str) -> None:
    """However it is printed, it looks like every other one; only `reveal` tells it."""
    secret, setting = Secret(value), SecretSetting(f"x{value}", "kafka.password")
    assert secret.reveal() == value
    assert f"{secret} {secret!r} {(secret,)}" == f"{Secret('y')} {Secret('y')!r} {(Secret('y'),)}"
    assert repr(setting) == repr(SecretSetting("y", "kafka.password"))
    assert str(setting) == HIDDEN


def test_a_reference_may_be_shown() -> None:
    """It says where a secret lies, and nothing of it."""
    assert str(SecretSetting("${env:KAFKA_SECRET}")) == "${env:KAFKA_SECRET}"
    assert str(SecretSetting("")) == ""


def test_a_secret_in_the_environment() -> None:
    """The variable's value, as it is."""
    setting = SecretSetting("${env:OF_KAFKA}", "kafka.password")
    assert setting.resolve({"OF_KAFKA": " a b\n"}).reveal() == " a b\n"


@pytest.mark.parametrize("environment", [{}, {"OF_KAFKA": ""}])
def test_a_variable_that_is_not_set_is_told(environment: dict[str, str]) -> None:
    """With the setting that refers to it."""
    with pytest.raises(InputError, match="OF_KAFKA is not set") as caught:
        SecretSetting("${env:OF_KAFKA}", "kafka.password").resolve(environment)
    assert caught.value.place == "kafka.password = ${env:OF_KAFKA}"


@pytest.mark.parametrize("content", ["geheim é", "geheim é\n", "geheim é\r\n"])
def test_a_secret_in_a_file(tmp_path: Path, content: str) -> None:
    """Relative to the folder of the settings, without the end of its line."""
    (tmp_path / "kafka").write_bytes(content.encode())
    setting = SecretSetting("${file:kafka}", "kafka.password", tmp_path)
    assert setting.resolve({}).reveal() == "geheim é"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"", "holds nothing"),
        (b"\n", "holds nothing"),
        (b"x" * 100_000, "too large"),
        (b"secret\xff", "not text in UTF-8"),
    ],
)
def test_a_file_that_holds_no_secret_is_told(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    """With the setting and the file; nothing of what it holds."""
    if content is not None:
        (tmp_path / "kafka").write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        SecretSetting("${file:kafka}", "kafka.password", tmp_path).resolve({})
    assert "kafka.password" in caught.value.place
    assert "secret\\xff" not in repr(caught.value.__cause__)


@pytest.mark.parametrize(
    "written", ["${env:}", "${file:}", "${env:A B}", "${other:x}", "${env:A}b"]
)
def test_what_looks_like_a_reference_and_is_none_is_refused(written: str) -> None:
    """A misspelt reference would be taken for the secret; it is not repeated, it may be one."""
    problem = problem_with("kafka.password", written)
    assert problem is not None
    assert written not in problem.message
    assert "${env:NAME}" in problem.message


@pytest.mark.parametrize("written", ["", "plain", "a\nb", "a${env:B}", "${env:A_1}", "${file:~/x}"])
def test_what_a_secret_may_look_like(written: str) -> None:
    """A reference, or anything that does not begin like one."""
    assert problem_with("kafka.password", written) is None
