from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.examples.catalogue import EXAMPLES

Caller = Callable[..., Any]


def test_the_examples_are_listed_with_their_outputs(medusa: Caller) -> None:
    """One line each; the data contain the boxes that are compared."""
    called = medusa("example", "list")
    assert called.code == 0
    assert all(example.summary in called.out for example in EXAMPLES.values())
    listed = medusa("example", "list", "-o", "json").data["examples"]
    assert [one["name"] for one in listed] == list(EXAMPLES)
    assert listed[0]["outputs"] == ["toll_notifications", "tow_dispatch"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_project_of_every_example_is_written_and_checked(medusa: Caller, name: str) -> None:
    """The written project can be drawn; `init` prints the command for its results."""
    called = medusa("init", name)
    assert called.code == 0
    assert f"medusa tail {EXAMPLES[name].topic}" in called.out
    assert Path("producer.py").is_file()
    assert medusa("show").out.startswith(f"network {name}\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("example", "run", "tolls", "--for", "3s"), "--for needs --cut"),
        (("example", "run", "tolls", "--cut", "partition", "--for", "3"), "not a duration"),
        (("example", "run", "tolls", "--cut", "partition", "--for", "0s"), "from 1s to 1h"),
        (("example", "run", "tolls", "--cut", "broker", "--for", "1m"), "from 1s to 45s"),
        (("example", "run", "prices", "--cut", "partition"), "tolls has one"),
        (("demo", "--cut", "producer", "--nodes", "2"), "--nodes 1"),
        (("demo", "--cut", "nonsense"), "partition"),
    ],
)
def test_a_cut_that_cannot_be_is_a_usage_error(
    medusa: Caller, arguments: tuple[str, ...], says: str
) -> None:
    """Before anything is started."""
    called = medusa(*arguments)
    assert called.code == 64
    assert says in called.err


def test_an_unknown_example_is_a_usage_error(medusa: Caller) -> None:
    """With the existing ones, before anything is started."""
    called = medusa("example", "run", "nonsense")
    assert called.code == 64
    assert "tolls" in called.err
