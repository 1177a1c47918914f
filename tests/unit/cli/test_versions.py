from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.cli.session import Opener
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import DOCUMENT, SCHEMA, World, write_project

Caller = Callable[..., Any]
FASTER = DOCUMENT.replace("speed > 0", "speed > 9")
OTHERS = FASTER.replace("stopped: {filter", "parked: {filter").replace(
    "stopped: {topic: stopped-cars}", "parked: {topic: parked-cars}"
)
KEPT = OTHERS.replace("network: cars\n", "network: cars\nretention: 3d\n")


@pytest.fixture
def connect(medusa: Caller) -> Opener:
    """Four versions of cars: a changed box, a renamed box, a shorter retention."""
    found = opener(World.new())
    for text in (DOCUMENT, FASTER, OTHERS, KEPT):
        write_project(Path(), text)
        assert medusa("deploy", "--no-wait", "--yes", opener=found).code == 0
    return found


def test_the_document_is_printed_as_it_was_deployed(medusa: Caller, connect: Opener) -> None:
    """That of the given version, or of the deployed one."""
    assert medusa("get", "cars", "--version", "1", opener=connect).out == DOCUMENT
    assert medusa("get", "cars", "--version", "3", opener=connect).out == OTHERS


def test_the_data_of_a_version_contain_schemas_and_code(medusa: Caller, connect: Opener) -> None:
    """In YAML the document is a literal block."""
    data = medusa("get", "cars", "--version", "2", "-o", "json", opener=connect).data
    assert (data["network"], data["version"], data["deployed"]) == ("cars", 2, False)
    assert (data["document"], data["schemas"], data["code"]) == (FASTER, {"sightings": SCHEMA}, {})
    assert medusa("get", "cars", "-o", "json", opener=connect).data["deployed"] is True
    printed = medusa("get", "cars", "--version", "2", "-o", "yaml", opener=connect).out
    assert "document: |\n  network: cars\n" in printed
    assert yaml.safe_load(printed) == data


def test_the_changes_of_a_version_are_printed_by_fragment(medusa: Caller, connect: Opener) -> None:
    """By default from the previous version, in the format of `plan`."""
    printed = medusa("diff", "cars", "--to", "2", opener=connect).out
    assert printed == (
        "network cars: from version 1 to version 2\n"
        "fragments (1 change)\n"
        "  ~ moving  change   changed: where of moving `speed > 0` → `speed > 9`\n"
    )
    write_project(Path())
    planned = medusa("rollback", "cars", "--to", "1", "--dry-run", opener=connect).out
    back = medusa("diff", "cars", "--from", "2", "--to", "1", opener=connect).out
    (line,) = [line for line in back.splitlines() if "moving" in line]
    assert line.split() in [other.split() for other in planned.splitlines()]


def test_new_and_removed_fragments_are_printed(medusa: Caller, connect: Opener) -> None:
    """Between any two versions; in the data too."""
    printed = medusa("diff", "cars", "--from", "1", "--to", "3", opener=connect).out
    assert "  + parked   create   writes parked-cars" in printed
    assert "  - stopped  remove   no longer in the network" in printed
    data = medusa("diff", "cars", "--from", "1", "-o", "json", opener=connect).data
    assert (data["from"], data["to"], data["identical"]) == (1, 4, False)
    assert {one["name"]: one["action"] for one in data["fragments"]} == {
        "moving": "change",
        "parked": "create",
        "stopped": "remove",
    }


def test_equal_versions_are_reported_as_equal(medusa: Caller, connect: Opener) -> None:
    """The same text, or a difference that affects no fragment."""
    same = medusa("diff", "cars", "--from", "3", "--to", "3", opener=connect)
    assert (same.code, same.out.splitlines()[1]) == (0, "both are the same, word for word")
    kept = medusa("diff", "cars", opener=connect).out.splitlines()
    assert kept == [
        "network cars: from version 3 to version 4",
        "no fragment differs, but what was deployed does",
    ]
    data = medusa("diff", "cars", "--from", "2", "--to", "2", "-o", "json", opener=connect).data
    assert (data["identical"], data["fragments"]) == (True, [])


@pytest.mark.parametrize("verb", [["get", "--version"], ["diff", "--from"], ["diff", "--to"]])
def test_a_missing_version_is_an_error(medusa: Caller, connect: Opener, verb: list[str]) -> None:
    """With the command that lists the existing ones."""
    missing = medusa(verb[0], "cars", verb[1], "9", opener=connect)
    assert missing.code == 65
    assert "medusa history cars" in missing.err
    assert medusa(verb[0], "vans", opener=connect).code == 65


def test_the_first_version_has_no_predecessor(medusa: Caller, connect: Opener) -> None:
    """Without --from it cannot be compared."""
    first = medusa("diff", "cars", "--to", "1", opener=connect)
    assert first.code == 65
    assert "no version before version 1" in first.err
