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
    """Four versions of cars: a box changes, another one has another name, topics keep less."""
    found = opener(World.new())
    for text in (DOCUMENT, FASTER, OTHERS, KEPT):
        write_project(Path(), text)
        assert medusa("deploy", "--no-wait", "--yes", opener=found).code == 0
    return found


def test_the_document_is_printed_as_it_was_deployed(medusa: Caller, connect: Opener) -> None:
    """The deployed version's, or that of another one."""
    assert medusa("get", "cars", "--version", "1", opener=connect).out == DOCUMENT
    assert medusa("get", "cars", "--version", "3", opener=connect).out == OTHERS


def test_a_document_comes_with_what_was_deployed_with_it(medusa: Caller, connect: Opener) -> None:
    """As data; in YAML its lines are lines."""
    data = medusa("get", "cars", "--version", "2", "-o", "json", opener=connect).data
    assert (data["network"], data["version"], data["deployed"]) == ("cars", 2, False)
    assert (data["document"], data["schemas"], data["code"]) == (FASTER, {"sightings": SCHEMA}, {})
    assert medusa("get", "cars", "-o", "json", opener=connect).data["deployed"] is True
    printed = medusa("get", "cars", "--version", "2", "-o", "yaml", opener=connect).out
    assert "document: |\n  network: cars\n" in printed
    assert yaml.safe_load(printed) == data


def test_what_a_version_changed_is_told_by_fragment(medusa: Caller, connect: Opener) -> None:
    """By default from the version before, in the words of `plan`."""
    told = medusa("diff", "cars", "--to", "2", opener=connect).out
    assert told == (
        "network cars: from version 1 to version 2\n"
        "fragments (1 change)\n"
        "  ~ moving  change   changed: where of moving `speed > 0` → `speed > 9`\n"
    )
    write_project(Path())
    planned = medusa("rollback", "cars", "--to", "1", "--dry-run", opener=connect).out
    back = medusa("diff", "cars", "--from", "2", "--to", "1", opener=connect).out
    (line,) = [line for line in back.splitlines() if "moving" in line]
    assert line.split() in [other.split() for other in planned.splitlines()]


def test_new_and_removed_fragments_are_told(medusa: Caller, connect: Opener) -> None:
    """Between any two versions, as data too."""
    told = medusa("diff", "cars", "--from", "1", "--to", "3", opener=connect).out
    assert "  + parked   create   writes parked-cars" in told
    assert "  - stopped  remove   no longer in the network" in told
    data = medusa("diff", "cars", "--from", "1", "-o", "json", opener=connect).data
    assert (data["from"], data["to"], data["identical"]) == (1, 4, False)
    assert {one["name"]: one["action"] for one in data["fragments"]} == {
        "moving": "change",
        "parked": "create",
        "stopped": "remove",
    }


def test_versions_without_a_difference_say_so(medusa: Caller, connect: Opener) -> None:
    """The same text, or one that differs where no fragment does."""
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
def test_a_version_that_is_not_there_is_an_error(
    medusa: Caller, connect: Opener, verb: list[str]
) -> None:
    """With what lists those that are."""
    missing = medusa(verb[0], "cars", verb[1], "9", opener=connect)
    assert missing.code == 65
    assert "medusa history cars" in missing.err
    assert medusa(verb[0], "vans", opener=connect).code == 65


def test_the_first_version_has_none_before_it(medusa: Caller, connect: Opener) -> None:
    """Then it has to be said which one is meant."""
    first = medusa("diff", "cars", "--to", "1", opener=connect)
    assert first.code == 65
    assert "no version before version 1" in first.err
