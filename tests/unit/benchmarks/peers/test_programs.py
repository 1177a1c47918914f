import doctest
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.peers import programs
from benchmarks.peers.programs import HERE, PEERS, Job, compile_command, run_command
from benchmarks.peers.running import peer_jars

JAVA = Path("/jdk/bin/java")
JARS = (Path("/jars/one.jar"), Path("/jars/two.jar"))
JOB = Job("chain", "run-1", "127.0.0.1:1", "in", ("a", "b", "c"), 7, Path("/scratch"), 500)


def test_examples_in_docstrings_hold() -> None:
    """The doctests of the module pass."""
    assert doctest.testmod(programs).failed == 0


@pytest.mark.parametrize("side", PEERS)
def test_the_compiler_gets_both_sources_and_all_jars(side: str) -> None:
    """As a list of files: Java's own launcher would not expand a pattern for the compiler."""
    command = compile_command(JAVA, PEERS[side], JARS, Path("/classes"))
    assert command[:3] == [str(JAVA), "-m", "jdk.compiler/com.sun.tools.javac.Main"]
    assert command[command.index("-cp") + 1] == "/jars/one.jar:/jars/two.jar"
    sources = [Path(word) for word in command if word.endswith(".java")]
    assert len(sources) == 2
    assert all(source.is_file() for source in sources)


@pytest.mark.parametrize("side", PEERS)
def test_a_program_gets_the_options_that_it_reads(side: str) -> None:
    """No option is missing, and none is passed that neither source reads."""
    command = run_command(JAVA, PEERS[side], JARS, Path("/classes"), JOB)
    assert command[command.index("-cp") + 1] == "/classes:/jars/one.jar:/jars/two.jar"
    arguments = command[command.index(PEERS[side].main) + 1 :]
    passed = dict(zip(arguments[::2], arguments[1::2], strict=True))
    sources = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("*.java"))
    read = set(re.findall(r'(?:text|number|file)\("([a-z-]+)"\)', sources))
    assert {f"--{name}" for name in read} == set(passed)
    assert passed["--targets"] == "a,b,c"
    assert passed["--grace-ms"] == "500"


def test_the_list_of_jars_has_every_direct_dependency_in_its_version() -> None:
    """The dependencies of `ivy.xml` are in `jars.sha256`: the two files were changed together."""
    document = ET.fromstring((HERE / "ivy.xml").read_text(encoding="utf-8"))  # noqa: S314 - our own file
    required = {
        f"{mapping.partition('->')[0]}/{d.get('name')}-{d.get('rev')}.jar"
        for d in document.iter("dependency")
        for mapping in (d.get("conf") or "").split(";")
    }
    listed = {jar.path for jar in peer_jars().jars}
    assert required <= listed
    assert {path.partition("/")[0] for path in listed} == set(PEERS)


def test_a_job_of_flink_starts_from_the_savepoint_of_another() -> None:
    """The file that one writes is the one that the other waits for."""
    following = replace(JOB, scratch=Path("/other"), restore=JOB.savepoint)
    first, second = (
        dict(zip(one.arguments()[::2], one.arguments()[1::2], strict=True))
        for one in (JOB, following)
    )
    assert first["--restore"] == ""
    assert second["--restore"] == first["--savepoint"] == "/scratch/savepoint"
    assert first["--stop"] != second["--stop"]
