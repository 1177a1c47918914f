"""Installation of clients: a missing tool is reported, a wrong lock file is a failure."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.clients.installing import NotHereError, Program, ensure, go_program, node_program

Install = Callable[[Path], Program]
NPM = ("node", "npm")
GO = ("go", "cc")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts programs first on the path that print a text and fail, except for their version."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def put(names: tuple[str, ...], says: str, version: str = "v20.0.0") -> None:
        (folder / "says").write_text(says)
        for name in names:
            tool = folder / name
            tool.write_text(
                '#!/bin/sh\n[ "$1" = env ] && echo cc && exit\n[ "$1" = version ] && exit\n'
                f'[ "$1" = --version ] && echo {version} && exit\n'
                f"cat {folder}/says >&2\nexit 1\n"
            )
            tool.chmod(0o755)

    return put


@pytest.mark.parametrize(
    ("install", "names", "says", "reason"),
    [
        (node_program, NPM, "npm error code ENOTFOUND\nnpm error network", "ENOTFOUND"),
        (node_program, NPM, "npm ERR! code ECONNREFUSED", "ECONNREFUSED"),
        (node_program, NPM, "npm error code E503", "E503"),
        (go_program, GO, "a@v1: Get x: dial tcp: lookup proxy: no such host", "no such host"),
        (go_program, GO, "reading a@v1.zip: 502 Bad Gateway", "Bad Gateway"),
        (go_program, GO, "go: module a@v1 requires go >= 1.99 (running go 1.1)", "go >= 1.99"),
    ],
)
def test_an_unavailable_client_is_reported(
    tools: Callable[..., None],
    tmp_path: Path,
    install: Install,
    names: tuple[str, ...],
    says: str,
    reason: str,
) -> None:
    """The registry is unreachable, or the language is too old: no client, and no files remain."""
    tools(names, says)
    with pytest.raises(NotHereError, match=reason):
        install(tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]


def test_an_old_node_is_reported(tools: Callable[..., None], tmp_path: Path) -> None:
    """Before the installation."""
    tools(NPM, "", "v18.19.1")
    with pytest.raises(NotHereError, match=r"too old here: v18\.19\.1"):
        node_program(tmp_path / "cache")


@pytest.mark.parametrize(
    ("install", "names", "says"),
    [
        (node_program, NPM, "npm error code EINTEGRITY\nnpm error sha512-… integrity checksum"),
        (node_program, NPM, "npm error code EUSAGE\nnpm error not in sync"),
        (node_program, NPM, "npm error code ETARGET\nnpm error no such version"),
        (node_program, NPM, "something else"),
        (go_program, GO, "verifying a@v1: checksum mismatch\nSECURITY ERROR"),
        (go_program, GO, "main.go:7:2: missing go.sum entry for module providing package a"),
        (go_program, GO, "reading a@v1.mod: 404 Not Found"),
        (go_program, GO, "./main.go:7:2: undefined: x"),
    ],
)
def test_a_wrong_lock_fails(
    tools: Callable[..., None], tmp_path: Path, install: Install, names: tuple[str, ...], says: str
) -> None:
    """Every error that is not of the network is a failure."""
    tools(names, says)
    with pytest.raises(AssertionError, match="failed"):
        install(tmp_path / "cache")


@pytest.mark.parametrize(
    ("install", "reason"), [(node_program, "Node is not"), (go_program, "Go is not")]
)
def test_a_missing_language_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install: Install, reason: str
) -> None:
    """By its name."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotHereError, match=reason):
        install(tmp_path / "cache")


def test_a_folder_is_created_once_and_completely(tmp_path: Path) -> None:
    """A failed installation leaves no files; an existing one is not repeated."""
    place = tmp_path / "cache" / "x"

    def half(folder: Path) -> None:
        (folder / "one").write_text("1")
        raise OSError

    with pytest.raises(OSError, match=r"^$"):
        ensure(place, half)
    assert not place.exists()
    assert ensure(place, lambda folder: (folder / "two").touch()) == place
    assert ensure(place, half) == place
    assert [file.name for file in place.iterdir()] == ["two"]
