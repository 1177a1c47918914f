"""Installation of Confluent's clients for Node and Go, once, into the cache outside this tree.

An installation is named by a hash of its inputs, so a new lock file causes a new one. It is built
in a temporary folder and then renamed, so it is never visible incomplete.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from brokers.embedded.file_lock import exclusive_lock
from brokers.embedded.processes import ChildSpec, start_child
from brokers.embedded.progress import silent

HERE = Path(__file__).parent
INSTALLED_WITHIN_S = 600.0
NODE_AT_LEAST = 20
_VERSION_WITHIN_S = 60.0
_NPM_CODE = r"npm (?:error|ERR!) code (\S+)"
_NPM_UNREACHABLE = (
    r"ENOTFOUND|EAI_AGAIN|ECONN\w+|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENETDOWN"
    r"|ERR_SOCKET_TIMEOUT|ENOTCACHED|ERR_PROXY\w*|E40[137]|E429|E5\d\d"
)
_GO_UNREACHABLE = (
    r"dial tcp|no such host|connection re(?:fused|set)|i/o timeout|TLS handshake timeout"
    r"|deadline exceeded|unexpected EOF|network is unreachable|lookup disabled|proxyconnect"
    r"|: (?:40[37]|429|5\d\d) \w"
)
_GO_TOO_OLD = r"requires go >= \S+"


class NotHereError(Exception):
    """A client cannot be installed on this machine, for reasons outside the project."""


@dataclass(frozen=True, slots=True)
class Program:
    """Command line and environment of a client that reads requests from standard input."""

    language: str
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()


def node_program(cache: Path, source: Path = HERE / "node") -> Program:
    """The client for Node, with the packages of the lock file; none of their scripts run.

    Raises:
        NotHereError: there is no Node, or an old one, or no registry of packages answers.
    """
    node, npm = found("node", "Node"), found("npm", "npm")
    version = output_of(node, "--version")
    if int(version.removeprefix("v").partition(".")[0]) < NODE_AT_LEAST:
        raise NotHereError(f"Node is too old here: {version}, not {NODE_AT_LEAST}")
    locked = (source / "package.json", source / "package-lock.json")

    def install(folder: Path) -> None:
        for file in locked:
            shutil.copy(file, folder)
        quiet = ("--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-retry-mintimeout=1000")
        log = run("npm", (npm, "ci", "--ignore-scripts", *quiet), folder)
        if log is not None:
            code = re.search(_NPM_CODE, log)
            if code and re.fullmatch(_NPM_UNREACHABLE, code[1]):
                raise NotHereError(f"the registry that npm asks does not answer: {code[1]}")
            raise AssertionError(f"npm ci failed:\n{log}")

    modules = ensure(cache / f"node-{digest(locked)}", install) / "node_modules"
    return Program("Node", (node, str(source / "client.js")), (("NODE_PATH", str(modules)),))


def go_program(cache: Path, source: Path = HERE / "go") -> Program:
    """The client for Go, built from its sources and the modules of the lock file.

    Raises:
        NotHereError: there is no Go, or an old one, or no C compiler, which the client needs; or no
            proxy of modules answers.
    """
    go = found("go", "Go")
    found(output_of(go, "env", "CC").split()[0], "the C compiler that Go uses")
    files = sorted([*source.glob("*.go"), source / "go.mod", source / "go.sum"])

    def build(folder: Path) -> None:
        flags = (("GOFLAGS", "-mod=readonly -buildvcs=false"), ("GOTOOLCHAIN", "local"))
        log = run("go", (go, "build", "-o", str(folder / "client"), "."), source, flags)
        if log is not None:
            reason = re.search(_GO_TOO_OLD, log)
            if reason:
                raise NotHereError(f"Go is too old here: {reason[0]}")
            if re.search(_GO_UNREACHABLE, log):
                raise NotHereError(f"where Go gets modules does not answer: {log[-300:]}")
            raise AssertionError(f"go build failed:\n{log}")

    place = cache / f"go-{digest(files, output_of(go, 'version'))}"
    return Program("Go", (str(ensure(place, build) / "client"),))


def ensure(place: Path, make: Callable[[Path], None]) -> Path:
    """A folder in the cache, made if missing, by one process at a time."""
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(
        place.with_suffix(".lock"), "installing a client", INSTALLED_WITHIN_S, silent
    ):
        if not place.is_dir():
            with tempfile.TemporaryDirectory(
                prefix=f"{place.name}.", dir=place.parent
            ) as temporary:
                made = Path(temporary) / "made"
                made.mkdir()
                make(made)
                made.rename(place)
    return place


def run(
    name: str,
    command: tuple[str, ...],
    folder: Path,
    environment: tuple[tuple[str, str], ...] = (),
) -> str | None:
    """Run a command; its output if it failed, else None.

    Raises:
        NotHereError: it does not end in time.
    """
    with tempfile.TemporaryDirectory() as temporary:
        log = Path(temporary) / "log"
        spec = ChildSpec(name, command, log, folder, environment=environment, grace_s=2.0)
        child = start_child(spec)
        ends_at = time.monotonic() + INSTALLED_WITHIN_S
        try:
            while child.running:
                if time.monotonic() > ends_at:
                    raise NotHereError(f"{name} is not done after {INSTALLED_WITHIN_S:g} s")
                time.sleep(0.1)
        finally:
            child.stop()
        return log.read_text(errors="replace") if child.exit_code else None


def found(program: str, what: str) -> str:
    """Path of a program; raises `NotHereError` if it is not installed."""
    place = shutil.which(program)
    if place is None:
        raise NotHereError(f"{what} is not installed")
    return place


def output_of(*command: str) -> str:
    """A program's output about its version or settings."""
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    return subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=_VERSION_WITHIN_S,
    ).stdout.strip()


def digest(files: list[Path] | tuple[Path, ...], more: str = "") -> str:
    """Hash of the contents of files."""
    hashed = hashlib.sha256(more.encode())
    for file in files:
        hashed.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return hashed.hexdigest()[:16]
