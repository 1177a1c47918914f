from typing import Any

import yaml

from brokers.embedded.jars import manifest
from pipeline.settings import SETTINGS
from tests.tidy.tree import ROOT

OURS = ("registry", "node")


def services() -> dict[str, Any]:
    """The services of docker-compose.yml."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    return dict(found["services"])


def test_our_services_are_set_up_with_variables_that_exist() -> None:
    """A misspelt variable would silently leave a setting at its default."""
    known = {setting.environment for setting in SETTINGS}
    assert {name for ours in OURS for name in services()[ours]["environment"]} <= known


def test_kafka_is_the_version_that_is_tested() -> None:
    """The image and the embedded broker are of one version."""
    version = services()["kafka"]["image"].partition(":")[2]
    assert f"kafka_2.13-{version}.jar" in {jar.name for jar in manifest()}


def test_what_the_image_is_made_of_exists() -> None:
    """Each file that the Dockerfile copies, and each script that a container runs, is there."""
    lines = (ROOT / "docker" / "Dockerfile").read_text("utf-8").splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    scripts = [word for ours in OURS for word in services()[ours]["command"] if "/" in word]
    assert copied
    assert scripts
    assert not [name for name in (*copied, *scripts) if not (ROOT / name).exists()]


def test_services_wait_for_what_is_there() -> None:
    """Whatever a service depends on exists and has a check of its health."""
    everything = services()
    for service in everything.values():
        for name in service.get("depends_on", {}):
            assert "healthcheck" in everything[name]
