"""Registry processes on one ZooKeeper: consistency, and durability after a kill."""

import json
import re
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from brokers.embedded.stack import EmbeddedStack
from tests.certificates import LOOPBACK, Authority
from tests.conftest import WaitFor

pytestmark = pytest.mark.system

UP_WITHIN_S = 60.0
PASSWORD = "not told to anybody"
Serve = Callable[..., "Process"]


class Process:
    """One `medusa registry serve`."""

    def __init__(self, folder: Path, zookeeper: str, *words: str) -> None:
        command = [sys.executable, "-P", "-m", "pipeline.cli.main", "registry", "serve"]
        command += ["--port", "0", "--data", str(folder)]
        command += ["--set", f"zookeeper.connect={zookeeper}", *words]
        folder.mkdir()
        self.output = folder / "output"
        with self.output.open("w") as output:
            self.process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)

    @property
    def url(self) -> str:
        """The address; empty before the process listens."""
        found = re.search(r"listens on (https?://\S+);", self.output.read_text())
        return found[1] if found else ""

    def post(self, path: str, body: object) -> httpx.Response:
        """POST a body."""
        return httpx.post(f"{self.url}{path}", json=body, timeout=30)

    def get(self, path: str) -> object:
        """GET an existing resource."""
        answer = httpx.get(f"{self.url}{path}", timeout=30)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()


@pytest.fixture
def serve(embedded_stack: EmbeddedStack, tmp_path: Path, wait_for: WaitFor) -> Iterator[Serve]:
    """Starts processes on a chroot of the test's own."""
    zookeeper = f"{embedded_stack.settings.zookeeper_connect}/{tmp_path.name}"
    started: list[Process] = []

    def start(*words: str) -> Process:
        made = Process(tmp_path / f"p{len(started)}", zookeeper, *words)
        started.append(made)
        wait_for(
            lambda: made.url or made.process.poll() is not None, "registry up", within_s=UP_WITHIN_S
        )
        assert made.process.poll() is None, made.output.read_text()
        return made

    yield start
    for one in started:
        one.process.kill()
        one.process.wait(30)


def schema(number: int) -> dict[str, str]:
    """A body with a schema unique to the number and compatible with all others."""
    field = {"name": f"f{number}", "type": "int", "default": 0}
    return {"schema": json.dumps({"type": "record", "name": "R", "fields": [field]})}


def test_acknowledged_registrations_survive_kill_9(serve: Serve) -> None:
    """Clients register at two servers; one is killed; the others return every schema once."""
    one, other = serve(), serve()
    known: dict[int, int] = {}
    lost = threading.Event()

    def register(at: Process, numbers: range) -> None:
        for number in numbers:
            try:
                answer = at.post("/subjects/s/versions", schema(number))
            except httpx.HTTPError:
                lost.set()
                return
            assert answer.status_code == httpx.codes.OK, answer.text
            known[number] = answer.json()["id"]

    threads = [
        threading.Thread(target=register, args=(at, range(first, 100_000, 4)))
        for first, at in enumerate((one, other, one, other))
    ]
    for thread in threads:
        thread.start()
    while len(known) < 40:
        lost.wait(0.01)
    one.process.send_signal(signal.SIGKILL)
    for thread in threads[::2]:
        thread.join(60)
    assert lost.is_set()
    other.process.send_signal(signal.SIGKILL)
    for thread in threads:
        thread.join(60)
    again = serve()
    for number, schema_id in dict(known).items():
        answer = again.post("/subjects/s", schema(number))
        assert answer.json()["id"] == schema_id
    versions = again.get("/subjects/s/versions")
    assert isinstance(versions, list)
    assert versions == list(range(1, len(versions) + 1))
    ids = [again.get(f"/subjects/s/versions/{version}")["id"] for version in versions]  # type: ignore[index] # an object
    assert sorted(ids) == list(range(1, len(ids) + 1))
    assert len(ids) >= len(known)


def test_servers_agree_at_once(serve: Serve) -> None:
    """An acknowledged write is visible on the other server; levels and deletions, too."""
    one, other = serve(), serve()
    for number in range(20):
        at, then = (one, other) if number % 2 else (other, one)
        made = at.post("/subjects/t/versions", schema(number)).json()
        assert then.get("/subjects/t/versions/latest")["id"] == made["id"]  # type: ignore[index] # an object
    httpx.delete(f"{one.url}/subjects/t/versions/20").raise_for_status()
    assert other.get("/subjects/t/versions") == list(range(1, 20))
    httpx.put(f"{other.url}/mode/t", json={"mode": "READONLY"}).raise_for_status()
    assert one.post("/subjects/t/versions", schema(99)).json()["error_code"] == 42205


def test_https_and_logins(serve: Serve, tmp_path: Path) -> None:
    """Roles apply to name prefixes; no log and no response contains a password."""
    authority = Authority(tmp_path / "ca", "those who are believed")
    proof = authority.sign("registry")
    users = tmp_path / "users.yaml"
    (tmp_path / "secret").write_text(PASSWORD)
    users.write_text(
        'users:\n  factory:\n    password: ${file:secret}\n    roles: {"": read, cars-: write}\n'
    )
    words = ("--users", str(users), "--certificate", str(proof.certificate))
    served = serve(*words, "--key", str(proof.key))
    assert served.url.startswith(f"https://{LOOPBACK}:")
    trusted = ssl.create_default_context(cafile=str(authority.ca))
    with httpx.Client(base_url=served.url, verify=trusted) as stranger:
        answer = stranger.get("/subjects")
        assert (answer.status_code, answer.json()["error_code"]) == (401, 401)
        assert answer.headers["www-authenticate"].startswith("Basic realm=")
    login = ("factory", PASSWORD)
    with httpx.Client(base_url=served.url, verify=trusted, auth=login) as factory:
        assert factory.post("/subjects/cars-value/versions", json=schema(1)).json()["id"] == 1
        assert factory.post("/subjects/other/versions", json=schema(1)).status_code == 403
        assert factory.put("/config", json={"compatibility": "NONE"}).status_code == 403
        assert factory.get("/subjects").json() == ["cars-value"]
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(30) == 0
    written = [path for path in served.output.parent.rglob("*") if path.is_file()]
    assert written
    assert all(PASSWORD not in path.read_text() for path in written)
