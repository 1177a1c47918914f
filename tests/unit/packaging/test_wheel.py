"""Wheel and sdist: built, installed and run in an environment without the source tree."""

import ast
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_string
from pathlib import Path, PurePosixPath

import pytest

from tests.tidy.tree import ROOT, tracked_files

OURS = "medusa_streams"
IN_THE_REPOSITORY = ("pipeline", "connectors", "brokers", "schemas")
PROJECTS = f"{OURS}/pipeline/projects/"
"""What `medusa init` copies: programs of users, which nothing changes."""
CALL_WITHIN_S = 120.0

NETWORK = """\
from medusa_streams.builder import NetworkBuilder, boxes

network = NetworkBuilder("speeds", window="10s")
sightings = network.stream(
    "sightings", topic="car-sightings", schema="schemas/sighting.avsc", event_time="seen_at"
)
moving = boxes.filter("moving", sightings, where="speed > 0")
network.output(moving, topic="moving-cars")
"""
LOADS_EVERYTHING = """\
import importlib, pkgutil, sys
import click, medusa_streams

for found in pkgutil.walk_packages(medusa_streams.__path__, "medusa_streams."):
    importlib.import_module(found.name)

from medusa_streams.pipeline.cli import detached
from medusa_streams.pipeline.cli.main import cli
from medusa_streams.pipeline.user_code.caller import Caller
from medusa_streams.pipeline.user_code.function import Function

def commands(group):
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        yield from commands(command) if isinstance(command, click.Group) else [command]

assert len([*commands(cli)]) > 40
for program in (detached.ARCHIVE_PROGRAM, detached.medusa_command()):
    assert importlib.util.find_spec(program[-1])
with Caller(Function("f.py:same", "def same(batch):\\n    return batch\\n", (), 10_000)) as caller:
    caller.load()
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"pipeline", "connectors", "brokers", "schemas"}))
"""


@dataclass(frozen=True, slots=True)
class Built:
    """The output of hatchling for the source tree."""

    wheel: Path
    sdist: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A wheel and an sdist of the tree; nothing is downloaded for it.

    A module that the hook of the build refuses makes all tests of them fail, with its line.
    """
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist"]
    called([*build, "-d", str(folder)], ROOT)
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return Built(wheel, sdist)


@pytest.fixture(scope="module")
def from_sdist(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip builds from the sdist."""
    folder = tmp_path_factory.mktemp("wheels")
    wheel = ["wheel", "--no-deps", "--no-index", "--no-build-isolation"]
    called(pip(*wheel, "--wheel-dir", str(folder), str(built.sdist)), folder)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def programs(from_sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment in which that wheel alone was installed.

    What Medusa depends on is added afterwards, from where this test runs. pip alone cannot do it
    without a download; where it lies, Python reads no `.pth` file, so no source tree of ours comes.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    install = ["install", "--no-deps", "--no-index", "--no-compile", str(from_sdist)]
    called(pip("--python", str(python), *install), folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    assert {entry.name.partition("-")[0] for entry in packages.iterdir()} == {OURS}
    here = sysconfig.get_path("purelib")
    (packages / "dependencies.pth").write_text(f"{here}\n", encoding="utf-8")
    return python.parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder, with packages that have the names of ours in the repository."""
    for name in IN_THE_REPOSITORY:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('a user has this')\n")
    return tmp_path


@pytest.fixture(scope="module")
def modules(built: Built) -> dict[str, ast.Module]:
    """The modules in the wheel, without users' programs."""
    with zipfile.ZipFile(built.wheel) as wheel:
        return {
            name: ast.parse(wheel.read(name), filename=name)
            for name in wheel.namelist()
            if name.endswith(".py") and not name.startswith(PROJECTS)
        }


def pip(*arguments: str) -> list[str]:
    """A call of the pip next to this test."""
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]


def called(command: list[str], folder: Path) -> str:
    """What a command writes on its standard output; it has to end well.

    It finds no module by the environment, and no settings of whoever runs this test.
    """
    kept = ("PYTHON", "MEDUSA_", "KAFKA_", "ZOOKEEPER_", "SCHEMA_REGISTRY_", "PYTEST_")
    done = subprocess.run(
        command,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith(kept)},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=CALL_WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_wheel_has_one_top_level_name(built: Built) -> None:
    """A package, and the folder of its metadata."""
    with zipfile.ZipFile(built.wheel) as wheel:
        tops = {PurePosixPath(name).parts[0] for name in wheel.namelist()}
    assert tops == {OURS, f"{'-'.join(built.wheel.name.split('-')[:2])}.dist-info"}


def test_a_wheel_contains_every_file_of_the_packages(built: Built) -> None:
    """Data too; and each file once."""
    with zipfile.ZipFile(built.wheel) as wheel:
        held = sorted(name for name in wheel.namelist() if name.startswith(f"{OURS}/"))
    expected = [
        path.as_posix() if path.parts[0] == OURS else f"{OURS}/{path.as_posix()}"
        for path in tracked_files()
        if path.parts[0] in (OURS, *IN_THE_REPOSITORY)
    ]
    assert held == sorted(expected)


def test_files_of_init_are_unchanged(built: Built) -> None:
    """Byte for byte as in the repository, where they are tested."""
    with zipfile.ZipFile(built.wheel) as wheel:
        projects = [name for name in wheel.namelist() if name.startswith(PROJECTS)]
        assert projects
        for name in projects:
            assert wheel.read(name) == (ROOT / name.removeprefix(f"{OURS}/")).read_bytes(), name


def test_sdist_and_tree_make_the_same_wheel(built: Built, from_sdist: Path) -> None:
    """Byte for byte."""
    assert from_sdist.name == built.wheel.name
    assert from_sdist.read_bytes() == built.wheel.read_bytes()


def test_an_editable_install_runs_the_tree_unchanged(tmp_path: Path) -> None:
    """As `make setup` does: a line with the path of the tree, and no module."""
    program = "import sys, hatchling.build; hatchling.build.build_editable(sys.argv[1])"
    called([sys.executable, "-c", program, str(tmp_path)], ROOT)
    (made,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(made) as wheel:
        (name,) = (name for name in wheel.namelist() if ".dist-info/" not in name)
        assert Path(wheel.read(name).decode()) == ROOT


def test_no_module_in_the_wheel_imports_by_an_old_name(modules: dict[str, ast.Module]) -> None:
    """Neither at the top nor in a function."""
    assert len(modules) > 500
    assert not [f"{name} imports {top}" for name, tree in modules.items() for top in imported(tree)]


def test_no_text_in_the_wheel_names_a_module_by_an_old_name(modules: dict[str, ast.Module]) -> None:
    """Descriptions may, since they are about the repository."""
    files = (name.removesuffix(".py").removesuffix("/__init__") for name in modules)
    known = {file.replace("/", ".") for file in files}
    found = {name: texts for name, tree in modules.items() if (texts := named(tree, known))}
    assert not found


def imported(tree: ast.Module) -> Iterator[str]:
    """The imports of a module by names of the repository."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        yield from (name for name in names if name.split(".")[0] in IN_THE_REPOSITORY)


def named(tree: ast.Module, known: set[str]) -> list[str]:
    """Texts of a module, without descriptions, that name a module as in the repository."""
    nodes = [*ast.walk(tree)]
    described = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    dotted = re.compile(rf"(?<![\w.])(?:{'|'.join(IN_THE_REPOSITORY)})(?:\.\w+)+|\bpipeline\b(?!/)")
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in described
        and any(f"{OURS}.{name}" in known for name in dotted.findall(node.value))
    ]


def test_the_checks_detect_old_names() -> None:
    """An import in a function, a program that is started by name; not one with the new name."""
    assert [*imported(ast.parse("def f():\n    import brokers.ports"))] == ["brokers.ports"]
    assert [*imported(ast.parse("from schemas import avro"))] == ["schemas"]
    assert not [*imported(ast.parse(f"from {OURS}.schemas import avro\nfrom . import schemas"))]
    known = {f"{OURS}.pipeline", f"{OURS}.schemas.server"}
    assert named(ast.parse("x = ['-m', 'schemas.server']"), known)
    assert named(ast.parse('''x = "No module named 'pipeline"'''), known)
    assert not named(ast.parse(f"x = ['-m', '{OURS}.schemas.server', 'schemas.md']"), known)


def test_the_command_prints_its_version(programs: Path, folder: Path) -> None:
    """By its own name, and as a module."""
    (metadata,) = programs.parent.glob("lib/python*/site-packages/*.dist-info/METADATA")
    version = message_from_string(metadata.read_text(encoding="utf-8"))["Version"]
    assert called([str(programs / "medusa"), "--version"], folder) == f"medusa {version}\n"
    help_text = called([str(programs / "python"), "-m", OURS, "--help"], folder)
    assert help_text.startswith("Usage: medusa ")


def test_a_project_is_created_drawn_and_explained(programs: Path, folder: Path) -> None:
    """In YAML and in Python, next to a user's packages of any name."""
    medusa = str(programs / "medusa")
    assert "network.yaml" in called([medusa, "init", "tolls"], folder)
    assert "[toll-notifications]" in called([medusa, "show"], folder)
    assert "fragment toll_notifications" in called([medusa, "explain"], folder)
    (folder / "speeds.py").write_text(NETWORK, encoding="utf-8")
    assert "[moving-cars]" in called([medusa, "show", "speeds.py"], folder)


def test_every_module_loads_next_to_user_packages_of_these_names(
    programs: Path, folder: Path
) -> None:
    """And every command, and a user's function in its process; none imports a user's package."""
    found = called([str(programs / "python"), "-c", LOADS_EVERYTHING], folder)
    assert found == "[]\n"


def test_pytest_loads_the_fixtures(programs: Path, folder: Path) -> None:
    """Without a line in a conftest.py."""
    without = [f"-pno:{plugin}" for plugin in ("cacheprovider", "schemathesis", "hypothesispytest")]
    (folder / "test_x.py").write_text("def test_x(medusa_network): ...\n", encoding="utf-8")
    found = called(
        [str(programs / "python"), "-m", "pytest", *without, "--setup-plan", "test_x.py"], folder
    )
    assert "medusa_network" in found
    assert "medusa_session" in found
