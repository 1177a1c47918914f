import textwrap
import time
from pathlib import Path

import pytest

from pipeline import yaml_reader
from pipeline.deploy import python_files
from pipeline.deploy.documents import read_document
from pipeline.errors import DocumentError, InputError, Problem
from pipeline.network.written import Place, Written
from pipeline.yaml_reader import YamlMap, YamlNode, YamlScalar
from tests.unit.deploy.twins import SCHEMA, write_project

BUILDER = "from medusa_streams.builder import NetworkBuilder, boxes\n"
CARS = BUILDER + textwrap.dedent(
    """
    network = NetworkBuilder("cars")
    s = network.stream("sightings", topic="cars", schema="sighting.avsc", event_time="seen_at")
    moving = boxes.filter("moving", s, where="speed > 0")
    network.output(moving, topic="moving-cars")
    """
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a schema in it."""
    (tmp_path / "sighting.avsc").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def problem_of(text: str, within_s: float = 20.0) -> Problem:
    """The problem of a file `network.py`."""
    Path("network.py").write_text(text)
    with pytest.raises(DocumentError) as caught:
        python_files.read_python(Path("network.py"), within_s)
    (problem,) = caught.value.problems
    return problem


def test_a_python_file_is_the_document_that_it_describes(folder: Path) -> None:
    """Its network and schemas equal those of the YAML text that a deploy stores."""
    Path("network.py").write_text(CARS)
    described = read_document(Path("network.py"), lambda _: None)
    (folder / "same.yaml").write_text(described.text)
    same = read_document(Path("same.yaml"), lambda _: None)
    assert described.network == same.network
    assert described.schemas == same.schemas == {"sightings": SCHEMA}
    assert described.file == "network.py"


def test_modules_in_its_folder_can_be_imported_and_problems_have_their_lines(folder: Path) -> None:
    """A problem in another module has that module's path, relative to the current folder."""
    (folder / "parts").mkdir()
    (folder / "parts" / "fast.py").write_text(
        "from medusa_streams.builder import boxes\n\n\ndef fast(s):\n"
        "    return boxes.filter('fast', s, where='spede > 1')\n"
    )
    Path("network.py").write_text(
        "from parts.fast import fast\n" + CARS + "fast(s)\nboxes.map('m', s, select=['cra'])\n"
    )
    with pytest.raises(DocumentError) as caught:
        read_document(Path("network.py"), lambda _: None)
    assert [(p.file, p.line, p.box) for p in caught.value.problems] == [
        ("parts/fast.py", 5, "fast"),
        ("network.py", 9, "m"),
    ]


def test_a_missing_file_is_the_error_of_any_missing_document(folder: Path) -> None:
    """Raised before any process starts."""
    with pytest.raises(InputError, match="there is no such document"):
        read_document(folder / "nothing.py", lambda _: None)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("import nothing_at_all", 1, "ModuleNotFoundError: No module named 'nothing_at_all'"),
        ("\n1 / 0", 2, "ZeroDivisionError: division by zero"),
        ("\ndef f(:", 2, "this is not Python: invalid syntax"),
        ("\x00", 0, "this is not Python: source code string cannot contain null bytes"),
        ("x = 1", 0, "there is no variable called network"),
        ("network = 5", 0, "network is of type int, not NetworkBuilder"),
        ("import sys\nsys.exit(3)", 2, "network.py ended the program: SystemExit(3)"),
        ("import os\nos._exit(3)", 0,
         "nothing was described: the process that ran the file ended with exit code 3"),
        ("import os\nos.kill(os.getpid(), 9)", 0,
         "nothing was described: the process that ran the file ended by SIGKILL"),
        (BUILDER + "NetworkBuilder('n', windw='1m')", 2,
         "TypeError: NetworkBuilder.__init__() got an unexpected keyword argument 'windw'"),
        (BUILDER + "NetworkBuilder('n', window=1.5)", 2, "window of network n cannot be a float"),
        ("import fractions\nfractions.Fraction(1, 0)", 2, "ZeroDivisionError: Fraction(1, 0)"),
        ("input()", 1, "EOFError: EOF when reading a line"),
    ],
)  # fmt: skip
def test_an_error_is_a_problem_of_one_line(
    folder: Path, text: str, line: int, message: str
) -> None:
    """With the line of the user's own file, and no trace."""
    del folder
    problem = problem_of(text)
    assert (problem.file, problem.line, problem.message) == ("network.py", line, message)


def test_a_network_in_a_variable_of_another_name_is_suggested(folder: Path) -> None:
    """The hint contains the correct assignment."""
    del folder
    problem = problem_of(BUILDER + "tolls = NetworkBuilder('tolls')")
    assert problem.choices == ("tolls",)
    assert "network = NetworkBuilder" in problem.hint


@pytest.mark.parametrize("loop", ["while True:\n    pass", "import time\ntime.sleep(60)"])
def test_a_file_that_does_not_end_is_stopped(folder: Path, loop: str) -> None:
    """After its timeout, with the line that was executing."""
    del folder
    problem = problem_of(loop, within_s=0.3)
    assert problem.message == "network.py does not end: it has run for 0.3 s"
    assert problem.line in {1, 2}


def test_a_file_that_cannot_be_stopped_is_killed(folder: Path) -> None:
    """Even if it catches all exceptions: by a signal that it cannot handle."""
    del folder
    text = "import time\nwhile True:\n  try: time.sleep(60)\n  except BaseException: pass\n"
    problem = problem_of(text, within_s=0.3)
    assert problem.message.endswith("the process that ran the file ended by SIGALRM")


def test_processes_that_a_file_started_end_with_it(folder: Path) -> None:
    """A remaining process has ended when the document is returned."""
    start = (
        "import pathlib, subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(300)'])\n"
        "pathlib.Path('pid').write_text(str(p.pid))\n"
    )
    (folder / "network.py").write_text(start + CARS)
    python_files.read_python(Path("network.py"))
    child = int((folder / "pid").read_text())
    ends_at = time.monotonic() + 10
    while _runs(child):
        assert time.monotonic() < ends_at
        time.sleep(0.01)


def test_output_of_a_file_is_not_data(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It goes to standard error, so that `-o json` stays JSON."""
    (folder / "network.py").write_text("print('hello')\n" + CARS)
    python_files.read_python(Path("network.py"))
    assert capfd.readouterr() == ("", "hello\n")


def test_a_folder_cannot_hide_our_own_modules(folder: Path) -> None:
    """Files in the document's folder with names of our or Python's modules are ignored."""
    for name in ("pipeline.py", "yaml.py", "json.py", "traceback.py"):
        (folder / name).write_text("raise RuntimeError('wrong module')\n")
    (folder / "network.py").write_text(CARS)
    assert python_files.read_python(Path("network.py")).tree is not None


def test_a_document_that_is_too_long_is_rejected(folder: Path) -> None:
    """It could not be read again from the catalog."""
    del folder
    entries: tuple[tuple[YamlScalar, YamlNode], ...] = tuple(
        (YamlScalar(f"k{i}", 1), YamlScalar("v", 1)) for i in range(yaml_reader.NODES_MAX)
    )
    written = Written(YamlMap(entries, 1), "network.py", places=(Place("network.py", 1),))
    with pytest.raises(DocumentError, match="too long"):
        python_files.text_of(written)


def test_yaml_is_read_without_another_process(tmp_path: Path) -> None:
    """Only files with the suffix .py are run."""
    path = write_project(tmp_path)
    assert read_document(path, lambda _: None).text == path.read_text()


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
