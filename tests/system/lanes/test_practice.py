"""What makes a node's Java fast before its first batch."""

import os
import re
from pathlib import Path

import pytest

from brokers.embedded.class_archive import archive_path, ensure_archive
from brokers.embedded.java import find_java
from pipeline.cli.detached import ARCHIVE_PROGRAM
from pipeline.demo.memory import descendants
from tests.system.lanes.support import Installation

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]


def test_an_idle_node_practises_every_kind_of_query_with_classes_of_the_archive(
    medusa: Installation,
) -> None:
    """The archive is the cache's, made by `make jars` or here; each query has results."""
    java, cache = find_java(os.environ), medusa.stack.cache
    ensure_archive(cache, java, ARCHIVE_PROGRAM)
    archive = archive_path(cache, java)
    assert archive.exists()
    log = medusa.folder / "logs" / "node-idle.log"

    def said() -> "re.Match[str] | None":
        return re.search(r"Java has practised, results: \{(.*)\}", log.read_text())

    with medusa.node("idle") as process:
        maps = [Path(f"/proc/{pid}/maps").read_text() for pid in descendants(process.pid)]
        assert any(str(archive) in text for text in maps)
        medusa.wait_for(said, "Java has practised", within_s=120.0)
    found = said()
    assert found is not None
    results = dict(re.findall(r"'(\w+)': (\d+)", found.group(1)))
    assert results.keys() == {"converted", "means", "pairs"}
    assert all(int(count) > 0 for count in results.values())
