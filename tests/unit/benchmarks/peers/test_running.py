from pathlib import Path

import pytest

from benchmarks.harness import Stack
from benchmarks.peers.running import peer_jars, prepare
from brokers.embedded.jars import jar_folder

RUNTIME = """\
#!/bin/sh
# A Java runtime without a compiler.
case "$1" in
    -version) echo 'openjdk version "17.0.15" 2025-04-15' >&2 ;;
    --list-modules) printf 'java.base@17.0.15\\njava.compiler@17.0.15\\n' ;;
    *) exit 1 ;;
esac
"""


def test_a_runtime_without_a_compiler_is_an_error_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is fetched."""
    java = tmp_path / "jre" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(RUNTIME, encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jre"))
    stack = Stack(tmp_path, "127.0.0.1:1", "http://127.0.0.1:1", tmp_path / "cache")
    with pytest.raises(SystemExit, match="install a JDK of version 17") as caught:
        prepare(stack, "flink")
    assert str(java) in str(caught.value)
    assert not stack.cache.exists()


def test_the_jars_of_peers_are_apart_from_those_of_the_stack(tmp_path: Path) -> None:
    """Another folder of the same cache."""
    assert peer_jars().folder(tmp_path) != jar_folder(tmp_path)
    assert peer_jars().folder(tmp_path).parent == jar_folder(tmp_path).parent
