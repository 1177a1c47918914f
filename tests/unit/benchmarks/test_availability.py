"""What the benchmark of cut inputs decides without servers."""

import doctest
import shutil
from pathlib import Path

import pytest

from benchmarks import availability
from benchmarks.availability import AVAILABILITY, BEFORE_END_MS, POLICIES, before_cut_ms
from benchmarks.readings import HERE
from benchmarks.sides import OURS, Run
from pipeline.deploy.documents import read_document


def test_examples_in_docstrings_hold() -> None:
    """The doctests of the module pass."""
    assert doctest.testmod(availability).failed == 0


@pytest.mark.parametrize("at_ms", [0.0, 699.5, 700.0, 999.0, 1_700_000_000_123.0])
def test_a_cut_begins_shortly_before_the_end_of_a_window(at_ms: float) -> None:
    """Within a second."""
    wait_ms = before_cut_ms(at_ms)
    assert 0 <= wait_ms < 1_000
    assert (at_ms + wait_ms + BEFORE_END_MS) % 1_000 == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_the_document_has_a_bound(policy: str, tmp_path: Path) -> None:
    """Of the policy that is measured."""
    shutil.copytree(HERE / "schemas", tmp_path / "schemas")
    run = Run("window", OURS, 1)
    text = run.document((HERE / "window.yaml").read_text("utf-8"))
    document = tmp_path / "window.yaml"
    document.write_text(text + AVAILABILITY.format(bound="5s", policy=policy), encoding="utf-8")
    bound = read_document(document, lambda *_: pytest.fail("no subject")).network.availability
    assert bound is not None
    assert (bound.bound_ms, bound.policy.value) == (5_000, policy)
