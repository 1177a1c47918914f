"""Settings of a project, by precedence: flags, environment, project file, user file, defaults.

The project file is `medusa.yaml`, in this folder or the nearest one above. While a stack of
`medusa up` runs for this project, its ports have precedence between the environment and the project
file.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from brokers.embedded.control import running_stack
from pipeline import yaml_reader
from pipeline.errors import DocumentError, InputError, Problem, UsageError
from pipeline.settings import SETTINGS, Kind, Settings, combine, problem_with, tells_a_secret
from pipeline.yaml_reader import YamlList, YamlMap

PROJECT_FILE = "medusa.yaml"
DOCUMENT_FILE = "network.yaml"
PYTHON_FILE = "network.py"
TESTS_FOLDER = "tests"
FLAG = "flag"
"""Source of a value that was given on the command line."""


@dataclass(frozen=True, slots=True)
class Project:
    """Project folder with its settings.

    Args:
        folder: that of the project file; the current folder if there is none.
        file: the project file, if there is one.
        settings: in force; `data`, `cache` and `checkpoints` are absolute paths.
    """

    folder: Path
    file: Path | None
    settings: Settings

    @property
    def data(self) -> Path:
        """The folder for logs, checkpoints and the embedded stack."""
        return Path(self.settings.data)

    @property
    def logs(self) -> Path:
        """The folder for logs."""
        return self.data / "logs"

    def document(self, named: str | None) -> Path:
        """The network document: the one given, else that of the project.

        Raises:
            InputError: none is given, and the project has one in YAML and one in Python.
        """
        if named:
            return Path(named)
        yaml, python = self.folder / DOCUMENT_FILE, self.folder / PYTHON_FILE
        if yaml.is_file() and python.is_file():
            raise InputError(
                f"there is {DOCUMENT_FILE}, and there is {PYTHON_FILE}",
                place=str(relative_to_cwd(self.folder)),
                hint=f"name one, as in `medusa plan {DOCUMENT_FILE}`, or with -f FILE.",
            )
        return relative_to_cwd(python if python.is_file() else yaml)

    def source(self, setting: str) -> str:
        """The source of a setting's value."""
        return dict(self.settings.sources).get(setting, "default")


def load_project(
    flags: Mapping[str, str],
    environment: Mapping[str, str],
    folder: Path,
) -> Project:
    """Read the settings files and combine all sources.

    Args:
        flags: dotted name → value, as typed.
        environment: the process's variables.
        folder: start of the search for the project file, which continues upwards.

    Raises:
        DocumentError: a file is not YAML, or contains unknown settings or invalid values.
        InputError: a file cannot be read, or a variable has an invalid value.
    """
    file = find_project_file(folder)
    base = file.parent if file else folder
    above = ((FLAG, flags), ("environment", from_environment(environment)))
    below = (
        (f"project file {file}", read_settings_file(file) if file else {}),
        _user_layer(environment),
    )
    data = _absolute(combine((*above, *below)).data, base)
    settings = combine((*above, ("running stack", _running(data)), *below))
    settings = replace(
        _from_base(settings, base), checkpoints=_checkpoints(settings.checkpoints, data, base)
    )
    return Project(base, file, settings)


def find_project_file(folder: Path) -> Path | None:
    """The nearest `medusa.yaml`, in the folder or above it."""
    start = folder.resolve()
    return next(
        (
            place / PROJECT_FILE
            for place in (start, *start.parents)
            if (place / PROJECT_FILE).is_file()
        ),
        None,
    )


def from_environment(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Settings from environment variables; empty ones are ignored.

    Raises:
        InputError: a value is invalid.
    """
    found: dict[str, str] = {}
    for setting in SETTINGS:
        value = environment.get(setting.environment)
        if not value:
            continue
        problem = problem_with(setting.name, value)
        if problem is not None:
            raise InputError(problem.message, place=f"environment variable {setting.environment}")
        found[setting.name] = value
    return found


def from_assignments(assignments: tuple[str, ...]) -> Mapping[str, str]:
    """Settings from `--set NAME=VALUE`.

    Raises:
        UsageError: `=` is missing, the setting does not exist, or the value is invalid.
    """
    found: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise UsageError(f"--set {assignment}: write NAME=VALUE")
        problem = problem_with(name, value)
        if problem is not None:
            raise UsageError(
                f"--set {name}: {problem.message}",
                hint=f"there is: {', '.join(problem.choices)}." if problem.choices else "",
            )
        if tells_a_secret(name, value):
            raise UsageError(
                f"--set {name}: everybody on this machine can see a password that is typed here",
                hint="give a reference to the password: '${env:NAME}' or '${file:PATH}'.",
            )
        found[name] = value
    return found


def read_settings_file(path: Path) -> Mapping[str, str]:
    """A settings file as dotted name → value; nested keys are joined by dots: `kafka: {…: x}`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}", place=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError("this is not text in UTF-8", place=str(path)) from error
    if not any(line.partition("#")[0].strip() for line in text.splitlines()):
        return {}
    content, problems = yaml_reader.read(text, str(path))
    if content is not None and not isinstance(content, YamlMap):
        problems = (Problem("a settings file contains names and values", file=str(path), line=1),)
    found: dict[str, str] = {}
    if not problems and isinstance(content, YamlMap):
        problems = tuple(_flatten(content, "", found, str(path)))
    if problems:
        raise DocumentError(problems)
    return found


def _flatten(content: YamlMap, prefix: str, found: dict[str, str], file: str) -> Iterator[Problem]:
    """Add the settings to `found`; yields the problems, each with its line."""
    for key, value in content.entries:
        name = f"{prefix}{key.text}"
        if isinstance(value, YamlMap):
            yield from _flatten(value, f"{name}.", found, file)
        elif isinstance(value, YamlList) or value.null:
            yield Problem(f"{name} needs a text or a number", file=file, line=key.line)
        else:
            found[name] = value.text
            problem = problem_with(name, value.text)
            if problem is not None:
                yield replace(problem, file=file, line=key.line)


def _running(data: Path) -> Mapping[str, str]:
    """The addresses of the embedded stack that runs in a data folder, if any."""
    stack = running_stack(data)
    if stack is None:
        return {}
    return {
        "kafka.bootstrap_servers": stack.kafka_bootstrap_servers,
        "zookeeper.connect": stack.zookeeper_connect,
        "registry.url": stack.registry_url,
    }


def _user_layer(environment: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    home = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME", "~")) / ".config")
    file = Path(home).expanduser() / "medusa" / "config.yaml"
    return (f"user file {file}", read_settings_file(file) if file.is_file() else {})


def _from_base(settings: Settings, base: Path) -> Settings:
    """The settings with absolute paths; relative ones are relative to the project folder."""
    changes: dict[str, Any] = {}
    for setting in SETTINGS:
        value = getattr(settings, setting.field)
        if setting.kind is Kind.PATH and value:
            changes[setting.field] = str(_absolute(value, base))
        elif setting.kind is Kind.SECRET:
            changes[setting.field] = replace(value, folder=base)
    return replace(settings, **changes)


def _absolute(text: str, base: Path) -> Path:
    return (base / Path(text).expanduser()).absolute()


def _checkpoints(text: str, data: Path, base: Path) -> str:
    if not text:
        return str(data / "checkpoints")
    return str(_absolute(text, base))


def relative_to_cwd(path: Path) -> Path:
    """The path relative to the current folder, if it is below it; shorter in messages."""
    cwd = Path(os.getcwd())  # noqa: PTH109 - the path of the user's shell
    return path.relative_to(cwd) if path.is_relative_to(cwd) else path
