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
"""The image that this project builds."""
FILES = (Path("docker-compose.yml"), Path("docker/existing-servers.yml"))
START = ["medusa", "node"]
BY_VARIABLE = {setting.environment: setting for setting in SETTINGS}


def compose(file: Path) -> dict[str, Any]:
    """A compose file, parsed."""
    found: dict[str, Any] = yaml.safe_load((ROOT / file).read_text("utf-8"))
    return found


def services(file: Path = FILES[0]) -> dict[str, Any]:
    """The services of a compose file."""
    return dict(compose(file)["services"])


def ours(file: Path) -> dict[str, Any]:
    """The services of the project's image."""
    return {name: s for name, s in services(file).items() if s["image"] == OURS}


def variables(service: dict[str, Any]) -> dict[str, str]:
    """The environment variables of a service: Compose reads two dollars as one."""
    found = {name: str(value) for name, value in service["environment"].items()}
    assert not [value for value in found.values() if re.search(r"(?<!\$)\$(?!\$)", value)]
    return {name: value.replace("$$", "$") for name, value in found.items()}


@pytest.mark.parametrize("file", FILES, ids=str)
def test_services_use_only_existing_settings(file: Path) -> None:
    """A misspelt variable would silently leave a setting at its default; values are valid."""
    assert ours(file)
    for service in ours(file).values():
        for name, value in variables(service).items():
            assert problem_with(BY_VARIABLE[name].name, value) is None


@pytest.mark.parametrize("file", FILES, ids=str)
def test_compose_files_contain_no_secret(file: Path) -> None:
    """Secrets are references to files that Compose mounts."""
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


def test_servers_have_the_tested_versions() -> None:
    """Images and embedded servers have equal versions."""
    found = {name: service["image"].partition(":")[2] for name, service in services().items()}
    assert f"kafka_2.13-{found['kafka']}.jar" in {jar.name for jar in manifest()}
    (zookeeper,) = (
        path for path in pyspark_jars().glob("*.jar") if artifact(path.name) == "zookeeper"
    )
    assert zookeeper.name == f"zookeeper-{found['zookeeper']}.jar"


@pytest.mark.parametrize("file", FILES, ids=str)
def test_images_are_pinned(file: Path) -> None:
    """To a full version, so that a file always runs the same servers."""
    for service in services(file).values():
        name, _, version = service["image"].partition(":")
        assert name == OURS or re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert any("build" in service for service in ours(file).values())


@pytest.mark.parametrize("file", FILES, ids=str)
def test_the_projects_image_is_never_pulled(file: Path) -> None:
    """A service builds it, or uses the one built for another; it is not published."""
    for service in ours(file).values():
        assert ("build" in service) != (service.get("pull_policy") == "never")


def test_the_owner_of_secret_files_is_documented() -> None:
    """Compose mounts secrets with the host's ownership, so the image's user must own them."""
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text("utf-8")
    (number,) = re.findall(r"useradd .*--uid (\d+)", dockerfile)
    comment = (ROOT / FILES[1]).read_text("utf-8").partition("\nname:")[0]
    assert f"number {number}," in comment


def test_secrets_are_excluded_from_image_builds() -> None:
    """Files that must not be committed are not sent to the image builder either."""
    kept_out = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    secret = {line.rstrip("/") for line in kept_out if line.startswith("docker/")}
    assert secret
    assert secret <= set((ROOT / ".dockerignore").read_text("utf-8").splitlines())


def test_files_copied_into_the_image_exist() -> None:
    """Each file that the Dockerfile copies."""
    lines = (ROOT / "docker" / "Dockerfile").read_text("utf-8").splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert copied
    assert not [name for name in copied if not (ROOT / name).exists()]


def test_containers_run_documented_commands() -> None:
    """Each command is in the reference."""
    described = (ROOT / "docs" / "reference" / "command-line.md").read_text("utf-8")
    commands = [service["command"] for service in ours(FILES[0]).values()]
    assert commands
    for command in commands:
        verbs = [word for word in command if not word.startswith("-")][:3]
        assert f"\n### {' '.join(verbs)}\n" in described


@pytest.mark.parametrize("file", FILES, ids=str)
def test_every_service_restarts_and_has_a_health_check(file: Path) -> None:
    """It has a health check and a restart policy; the services it waits for exist."""
    everything = services(file)
    for service in everything.values():
        assert service["healthcheck"]["test"][0] == "CMD"
        assert service["restart"] == "unless-stopped"
        assert set(service.get("depends_on", {})) <= everything.keys()


@pytest.mark.parametrize("file", FILES, ids=str)
def test_a_node_waits_for_its_servers(file: Path) -> None:
    """After a reboot all containers start at once, regardless of their dependencies."""
    nodes = [one["command"] for one in ours(file).values() if one["command"][:2] == START]
    assert nodes
    assert all("--servers-within=120" in command for command in nodes)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_data_are_in_volumes(file: Path) -> None:
    """All data of servers and nodes are in volumes, and each volume is used."""
    named = set(compose(file)["volumes"])
    mounted = {
        mount.partition(":")[0]
        for service in services(file).values()
        for mount in service.get("volumes", ())
        if not mount.startswith((".", "/"))
    }
    assert mounted == named
    for name, service in services(file).items():
        assert service.get("volumes") or name == "registry"  # its schemas are in ZooKeeper


@pytest.mark.parametrize("file", FILES, ids=str)
def test_ports_are_published_on_loopback_only(file: Path) -> None:
    """Since the servers have no authentication."""
    ports = [port for service in services(file).values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in ports)
