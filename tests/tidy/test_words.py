import json
import re
from pathlib import Path

from tests.tidy.tree import python_files, text_of, tracked_files

HERE = Path("tests/tidy")
UNFINISHED = (
    r"\b(TODO|FIXME|HACK)\b",
    r"\bNotImplementedError\b",
    r"\bmark\.(skip|skipif|xfail)\b",
    r"\bpytest\.(skip|xfail|importorskip)\b",
    r"\bunittest\.(skip|mock)\b",
)
MAY_SKIP = Path("tests/system/clients/conftest.py")
"""Tests of these clients are skipped without Node or Go, which the project does not need."""
ADDRESS = r"https?://(?:[^\s/@]*@)?([^\s/:\"'`)>\]]*)"
OUR_HOSTS = (
    r"(127\.0\.0\.1|localhost|\[::1\]|\{[^}]*\}?|registry|[\w.-]+\.(example|test|invalid)|\w)?"
)
"""Loopback, names in docker-compose.yml, placeholders in strings, and reserved names."""
MACHINE_PATHS = r"(?<![\w./{}$~-])/(work|root|Users)/\w+|(?<![\w./{}$~-])/home/\w+"
BINARY = {".png", ".ico", ".jar"}
OTHERS_TEXT = {Path("LICENSE")}
SVG_NAMESPACE = "http://www.w3.org/2000/svg"
"""A name that each such picture has, and nobody's address."""


def found(pattern: str, text: str) -> list[str]:
    """The matching lines, with their numbers."""
    if not re.search(pattern, text):
        return []
    return [
        f"{number}: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), start=1)
        if re.search(pattern, line)
    ]


def foreign_addresses(text: str) -> list[str]:
    """The addresses of external hosts."""
    return [
        match.group(0)
        for match in re.finditer(ADDRESS, text.replace(SVG_NAMESPACE, ""))
        if not re.fullmatch(OUR_HOSTS, match.group(1))
    ]


def texts() -> list[Path]:
    """Every text file of the project."""
    return [
        path
        for path in tracked_files()
        if path.suffix not in BINARY and path not in OTHERS_TEXT and HERE not in path.parents
    ]


def test_no_file_contains_unfinished_code() -> None:
    """No Python file contains a marker of open work, a stub, or a skipped test."""
    problems = {
        path.as_posix(): lines
        for path in python_files()
        if HERE not in path.parents
        and path != MAY_SKIP
        and (lines := found("|".join(UNFINISHED), text_of(path)))
    }
    assert not problems


def test_no_file_contains_a_download_address() -> None:
    """The sources of packages and jars are settings of the installing machine."""
    problems = {path.as_posix(): foreign_addresses(text_of(path)) for path in texts()}
    assert not {path: hosts for path, hosts in problems.items() if hosts}


def test_no_file_contains_a_path_of_one_machine() -> None:
    """The repository works at any location."""
    problems = {path.as_posix(): found(MACHINE_PATHS, text_of(path)) for path in texts()}
    assert not {path: lines for path, lines in problems.items() if lines}


def test_lock_files_contain_only_versions_and_hashes() -> None:
    """A lock file has no comments and no options, and every package has a hash."""
    for path in (Path("requirements.lock"), Path("requirements-build.lock")):
        packages = text_of(path).replace("\\\n", " ").splitlines()
        for package in packages:
            assert re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", package), package


def test_lock_files_of_other_languages_contain_only_versions_and_hashes() -> None:
    """Of the tests' clients."""
    for path in (one for one in tracked_files() if one.name == "package-lock.json"):
        (_, *packages) = json.loads(text_of(path))["packages"].values()
        assert packages
        for package in packages:
            assert package.keys().isdisjoint({"resolved", "funding", "link"}), package
            assert package["version"]
            assert package["integrity"].startswith("sha512-")
    for path in (one for one in tracked_files() if one.name == "go.sum"):
        for line in text_of(path).splitlines():
            assert re.fullmatch(r"\S+ v\S+ h1:[\w+/]{43}=", line), line


def test_the_checks_detect_violations() -> None:
    """Each kind of forbidden text is reported; similar allowed texts are not."""
    assert found("|".join(UNFINISHED), "x = 1  # TODO: more") == ["1: x = 1  # TODO: more"]
    assert foreign_addresses("see https://repository.somewhere.org/maven2") != []
    assert not foreign_addresses("http://127.0.0.1:8081 http://{host}:1 http://a.example/x")
    assert found(MACHINE_PATHS, 'open("/root/x")')
    assert not found(MACHINE_PATHS, "tests/root/x ~/root/x /medusa/networks")
