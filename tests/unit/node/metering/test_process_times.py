"""CPU time of processes and threads, from files as Linux has them."""

import os
from pathlib import Path

from pipeline.node.metering.calibration import TEXT_BYTES, calibrate, calibration_text
from pipeline.node.metering.process_times import ProcessReader, can_meter

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
OWN, JAVA, WORKER, SENDER = os.getpid(), 7_000_001, 7_000_002, 7_000_003


def stat(folder: Path, user: int, system: int, ended: int = 0) -> None:
    """The times of a process or a thread."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = ["S", *["0"] * 10, str(user), str(system), str(ended), "0", "20"]
    (folder / "stat").write_text(f"1 (a name) with) {' '.join(fields)}\n")


def thread(proc: Path, pid: int, task: int, name: str, ticks: int = 0, *children: int) -> None:
    """A thread of a process."""
    folder = proc / str(pid) / "task" / str(task)
    stat(folder, ticks, 0)
    (folder / "comm").write_text(f"{name}\n")
    (folder / "children").write_text("".join(f"{child} " for child in children))


def processes(proc: Path) -> Path:
    """The node with Java, which has a worker, and another child."""
    stat(proc / str(OWN), 0, 0, ended=2)
    thread(proc, OWN, OWN, "python", 1, JAVA)
    thread(proc, OWN, 5, "rdk:main", 3, SENDER)
    stat(proc / str(JAVA), 50, 10, ended=4)
    thread(proc, JAVA, JAVA, "java", 0, WORKER)
    stat(proc / str(WORKER), 6, 1)
    thread(proc, WORKER, WORKER, "python", 0)
    stat(proc / str(SENDER), 2, 2)
    return proc


def test_each_process_is_counted_where_it_belongs(tmp_path: Path) -> None:
    """Workers below Java, with those that have ended; others below the node."""
    found = ProcessReader(JAVA, processes(tmp_path)).read()
    assert found.node_ns > 0
    assert found.clients_ns == 3 * TICK_NS
    assert found.java_ns == 60 * TICK_NS
    assert found.functions_ns == (6 + 1 + 4) * TICK_NS
    assert found.other_ns == (2 + 2 + 2) * TICK_NS


def test_what_has_ended_stays_counted(tmp_path: Path) -> None:
    """A thread of a client, and a process that nobody has waited for yet."""
    proc = processes(tmp_path)
    reader = ProcessReader(JAVA, proc)
    before = reader.read()
    for file in (proc / str(OWN) / "task" / "5").iterdir():
        file.unlink()
    (proc / str(OWN) / "task" / "5").rmdir()
    thread(proc, OWN, 6, "rdk:broker1", 2)
    after = reader.read()
    assert after.clients_ns == 5 * TICK_NS
    assert after.other_ns == before.other_ns


def test_a_system_without_these_files_is_not_metered(tmp_path: Path) -> None:
    """Instead of counting nothing."""
    assert not can_meter(tmp_path)
    assert can_meter(processes(tmp_path))


def test_a_calibration_is_of_the_same_text_and_finds_a_speed() -> None:
    """A few rounds suffice for a number above 0."""
    assert calibration_text() == calibration_text()
    assert len(calibration_text()) == TEXT_BYTES
    assert calibrate(1).permille > 0
