import sys
from pathlib import Path

import pytest

from pipeline.errors import BrokenInvariantError, EnvironmentProblem
from pipeline.examples.cut import Cut, CutKind
from pipeline.examples.stage import Feed, Place, Stage, choose_place, fed, write_project
from pipeline.examples.tolls import TOLLS
from pipeline.system_clock import SystemClock

SAYS = "import sys; sys.stderr.write('error: no room left\\n'); sys.exit(int(sys.argv[1]))"


def place(folder: Path) -> Place:
    """A place in the test's folder, without listeners on its ports."""
    return choose_place(folder, folder / "cache")


def test_two_runs_have_different_ports(tmp_path: Path) -> None:
    """Every server has a free port, and no command uses the user's addresses instead."""
    one = place(tmp_path)
    stack = one.stack
    assert len({stack.kafka_port, stack.zookeeper_port, stack.registry_port}) == 3
    assert one.settings["kafka.bootstrap_servers"] == f"127.0.0.1:{stack.kafka_port}"
    assert one.settings["zookeeper.connect"] == f"127.0.0.1:{stack.zookeeper_port}/medusa"
    assert one.settings["registry.url"] == f"http://127.0.0.1:{stack.registry_port}"
    assert one.settings["data"].startswith(str(tmp_path))


def test_a_cut_makes_the_feed_longer() -> None:
    """The seconds of a run are those beside the cut; a run without one is as ever."""
    assert fed(30.0, 1, ("--rate=500",), None) == Feed(30.0, 1, ("--rate=500",))
    cut = Cut(CutKind.PRODUCER, 20.0)
    assert fed(30.0, 1, (), cut) == Feed(50.0, 1, (), CutKind.PRODUCER)


@pytest.mark.parametrize(
    ("kind", "before"),
    [
        (None, ""),
        (CutKind.PARTITION, "cut 0 "),
        (CutKind.PRODUCER, "cut all "),
        (CutKind.BROKER, ""),
    ],
)
def test_only_a_cut_of_the_feed_has_a_program_around_the_producer(
    tmp_path: Path, kind: CutKind | None, before: str
) -> None:
    """With the file that begins and ends it, and what is kept back."""
    with Stage(place(tmp_path), lambda *_: command(0), SystemClock()) as stage:
        (tmp_path / "producer.py").write_text("")
        child = stage.feed(Feed(1.0, 1, (), kind))
    line = " ".join(child.spec.command)
    assert f"{before}producer.py --bootstrap-servers=" in line
    assert ("held_feed" in line) is bool(before)


def test_the_project_is_written_with_short_windows(tmp_path: Path) -> None:
    """All files are in their folders; only the window differs."""
    files = {"network.yaml": b"network: tolls\nwindow: 1m\n", "schemas/sighting.avsc": b"{}"}
    write_project(place(tmp_path), TOLLS, files)
    assert (tmp_path / "network.yaml").read_text() == "network: tolls\nwindow: 10s\n"
    assert (tmp_path / "schemas" / "sighting.avsc").read_bytes() == b"{}"


def test_a_document_without_a_window_stops_before_anything_starts(tmp_path: Path) -> None:
    """The example's assumption about the document is checked."""
    with pytest.raises(BrokenInvariantError):
        write_project(place(tmp_path), TOLLS, {"network.yaml": b"network: tolls\n"})


def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    """A file in place of a folder is an environment error, with the path."""
    (tmp_path / "schemas").write_text("in the way")
    with pytest.raises(EnvironmentProblem, match="the project cannot be written"):
        write_project(place(tmp_path), TOLLS, {"schemas/sighting.avsc": b"{}"})


def command(code: int) -> tuple[str, ...]:
    """A program that prints a reason and ends, for any arguments."""
    return (sys.executable, "-c", SAYS, str(code))


def test_an_up_that_ends_is_reported_with_its_last_output(tmp_path: Path) -> None:
    """The message of `medusa up` reaches the user of the example."""
    stage = Stage(place(tmp_path), lambda *_: command(69), SystemClock())
    with stage, pytest.raises(EnvironmentProblem, match=r"exit code 69[\s\S]*no room left"):
        stage.up()


def test_a_failed_deploy_is_reported_with_its_last_output(tmp_path: Path) -> None:
    """An exit code other than zero ends the run."""
    stage = Stage(place(tmp_path), lambda *_: command(65), SystemClock())
    with stage, pytest.raises(EnvironmentProblem, match=r"exit code 65[\s\S]*no room left"):
        stage.deploy()


def test_a_successful_deploy_continues(tmp_path: Path) -> None:
    """Exit code zero is enough, and the process is gone by then."""
    with Stage(place(tmp_path), lambda *_: command(0), SystemClock()) as stage:
        stage.deploy()
    assert "no room left" in (tmp_path / ".medusa" / "logs" / "medusa-deploy.out").read_text()
