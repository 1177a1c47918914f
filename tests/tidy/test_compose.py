import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from brokers.embedded.jars import artifact, manifest, pyspark_jars
from pipeline import secrets
from pipeline.settings import SETTINGS, Kind, problem_with
from tests.tidy.tree import ROOT

OURS = "medusa-streams"
"""The image that is made here."""
FILES = (Path("docker-compose.yml"), Path("docker/existing-servers.yml"))
START = ["medusa", "node"]
BY_VARIABLE = {setting.environment: setting for setting in SETTINGS}


def compose(file: Path) -> dict[str, Any]:
    """What a compose file says."""
    found: dict[str, Any] = yaml.safe_load((ROOT / file).read_text("utf-8"))
    return found


def services(file: Path = FILES[0]) -> dict[str, Any]:
    """The services of a compose file."""
    return dict(compose(file)["services"])


def ours(file: Path) -> dict[str, Any]:
    """Those of our own image."""
    return {name: s for name, s in services(file).items() if s["image"] == OURS}


def variables(service: dict[str, Any]) -> dict[str, str]:
    """What a service of ours finds in its environment: Compose reads two dollars as one."""
    found = {name: str(value) for name, value in service["environment"].items()}
    assert not [value for value in found.values() if re.search(r"(?<!\$)\$(?!\$)", value)]
    return {name: value.replace("$$", "$") for name, value in found.items()}


@pytest.mark.parametrize("file", FILES, ids=str)
def test_our_services_are_set_up_with_settings_that_exist(file: Path) -> None:
    """A misspelt variable would silently leave a setting at its default; values have their form."""
    assert ours(file)
    for service in ours(file).values():
        for name, value in variables(service).items():
            assert problem_with(BY_VARIABLE[name].name, value) is None


@pytest.mark.parametrize("file", FILES, ids=str)
def test_a_secret_stands_in_no_compose_file(file: Path) -> None:
    """It comes by reference, out of a file that Compose puts there."""
    declared = compose(file).get("secrets", {})
    for service in ours(file).values():
        wanted = {
            value
            for name, value in variables(service).items()
            if BY_VARIABLE[name].kind is Kind.SECRET
        }
        assert all(secrets.is_reference(value) for value in wanted)
        given = {f"${{file:/run/secrets/{name}}}" for name in service.get("secrets", ())}
        assert wanted == given
        assert set(service.get("secrets", ())) == set(declared)
    assert all("file" in secret for secret in declared.values())


def test_servers_are_of_the_versions_that_are_tested() -> None:
    """The images and the embedded servers are of one version each."""
    found = {name: service["image"].partition(":")[2] for name, service in services().items()}
    assert f"kafka_2.13-{found['kafka']}.jar" in {jar.name for jar in manifest()}
    (zookeeper,) = (
        path for path in pyspark_jars().glob("*.jar") if artifact(path.name) == "zookeeper"
    )
    assert zookeeper.name == f"zookeeper-{found['zookeeper']}.jar"


@pytest.mark.parametrize("file", FILES, ids=str)
def test_images_are_pinned(file: Path) -> None:
    """To a whole version, so that the same file runs the same servers tomorrow."""
    for service in services(file).values():
        name, _, version = service["image"].partition(":")
        assert name == OURS or re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert any("build" in service for service in ours(file).values())


@pytest.mark.parametrize("file", FILES, ids=str)
def test_our_image_is_looked_for_nowhere_else(file: Path) -> None:
    """A service of ours is built, or takes what is built for another; nobody publishes it."""
    for service in ours(file).values():
        assert ("build" in service) != (service.get("pull_policy") == "never")


def test_who_must_be_able_to_read_secrets_is_told() -> None:
    """Compose mounts secrets as they lie on the host, so their owner has to be the image's user."""
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text("utf-8")
    (number,) = re.findall(r"useradd .*--uid (\d+)", dockerfile)
    comment = (ROOT / FILES[1]).read_text("utf-8").partition("\nname:")[0]
    assert f"number {number}," in comment


def test_secrets_are_in_no_build() -> None:
    """What must not be committed is not sent to the builder of the image either."""
    kept_out = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    secret = {line.rstrip("/") for line in kept_out if line.startswith("docker/")}
    assert secret
    assert secret <= set((ROOT / ".dockerignore").read_text("utf-8").splitlines())


def test_what_the_image_is_made_of_exists() -> None:
    """Each file that the Dockerfile copies is there."""
    lines = (ROOT / "docker" / "Dockerfile").read_text("utf-8").splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert copied
    assert not [name for name in copied if not (ROOT / name).exists()]


def test_our_containers_run_commands_of_ours() -> None:
    """Each is one that the reference describes."""
    described = (ROOT / "docs" / "reference" / "command-line.md").read_text("utf-8")
    commands = [service["command"] for service in ours(FILES[0]).values()]
    assert commands
    for command in commands:
        verbs = [word for word in command if not word.startswith("-")][:3]
        assert f"\n### {' '.join(verbs)}\n" in described


@pytest.mark.parametrize("file", FILES, ids=str)
def test_every_service_comes_back_and_says_whether_it_is_well(file: Path) -> None:
    """It has a check of its health, and is started again; what it waits for is there."""
    everything = services(file)
    for service in everything.values():
        assert service["healthcheck"]["test"][0] == "CMD"
        assert service["restart"] == "unless-stopped"
        assert set(service.get("depends_on", {})) <= everything.keys()


@pytest.mark.parametrize("file", FILES, ids=str)
def test_a_node_waits_for_its_servers(file: Path) -> None:
    """After a restart of the machine all containers start at once, whatever depends on what."""
    nodes = [one["command"] for one in ours(file).values() if one["command"][:2] == START]
    assert nodes
    assert all("--servers-within=120" in command for command in nodes)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_data_outlive_containers(file: Path) -> None:
    """Whatever a server or a node keeps lies in a volume; each volume is used."""
    named = set(compose(file)["volumes"])
    mounted = {
        mount.partition(":")[0]
        for service in services(file).values()
        for mount in service.get("volumes", ())
        if not mount.startswith((".", "/"))
    }
    assert mounted == named
    for name, service in services(file).items():
        assert service.get("volumes") or name == "registry"  # its schemas lie in ZooKeeper


@pytest.mark.parametrize("file", FILES, ids=str)
def test_only_this_machine_is_let_in(file: Path) -> None:
    """Servers that ask nobody who comes are published on loopback alone."""
    ports = [port for service in services(file).values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in ports)
