"""Stages of a run, and the report of their times."""

from pathlib import Path

import pytest

from tests.tidy.tree import ROOT, tracked_files
from tools.stages import (
    FIRST,
    IN_BOTH,
    SECOND,
    UNIT,
    Outcome,
    Tier,
    named,
    report,
    stages,
)

SEED = 7


def command(tier: Tier, name: str) -> str:
    """The command of a stage as one text."""
    (stage,) = (one for one in stages(tier, SEED) if one.name == name)
    return " ".join(stage.command)


def test_every_test_is_in_one_stage() -> None:
    """A new folder of tests that no stage names would never run."""
    paths = [Path(path) for _, group in (UNIT, *FIRST, *SECOND) for path in group]
    for file in tracked_files():
        if file.parts[0] == "tests" and file.name.startswith("test_") and file.suffix == ".py":
            assert len([path for path in paths if path in file.parents]) == 1, file


def test_every_path_of_a_stage_exists() -> None:
    """A renamed folder is detected."""
    paths = [path for _, group in (UNIT, *FIRST, *SECOND) for path in group]
    assert [path for path in paths if not (ROOT / path).is_dir()] == []


def test_the_first_tier_uses_fixed_examples_and_excludes_the_second() -> None:
    """So that a change that passed passes again."""
    text = command(Tier.FIRST, "unit")
    assert "--hypothesis-profile=ci --hypothesis-seed=20261124" in text
    assert "-m not second_tier" in text
    names = {stage.name for stage in stages(Tier.FIRST, SEED)}
    assert names.isdisjoint(name for name, _ in SECOND)


def test_the_full_run_uses_its_seed() -> None:
    """Many examples, all tests, and a turn of the fault matrix for each share of the cases."""
    text = command(Tier.ALL, "unit")
    assert f"--hypothesis-profile=deep --hypothesis-seed={SEED}" in text
    assert "second_tier" not in text
    for share in range(1, 8):
        assert f"--share={share}/7 --turn=1/7 --seed=7" in command(Tier.ALL, f"matrix-{share}")


def test_the_two_tiers_are_all() -> None:
    """What the first tier leaves out is in the second, which runs nothing else with servers."""
    for name, paths in FIRST:
        files = [path for folder in paths for path in (ROOT / folder).rglob("test_*.py")]
        marked = any("second_tier(" in path.read_text("utf-8") for path in files)
        assert marked == (name in IN_BOTH), name
    for name in IN_BOTH:
        assert "-m second_tier" in command(Tier.SECOND, name)
    first, second, every = ({one.name for one in stages(tier, SEED)} for tier in Tier)
    assert first | second == every


def test_stages_are_chosen_by_name() -> None:
    """A name that no stage has is an error, not an empty run that passes."""
    of = stages(Tier.SECOND, SEED)
    assert named(of, ()) == of
    assert [one.name for one in named(of, ("matrix-2", "unit"))] == ["unit", "matrix-2"]
    with pytest.raises(ValueError, match=r"no stage is called matrix; there are jars, unit"):
        named(of, ("matrix",))


def test_only_the_matrix_runs_alone() -> None:
    """A share of it has as many fragments as two processors can run."""
    for tier in Tier:
        for stage in stages(tier, SEED):
            assert stage.alone == stage.name.startswith("matrix-")


def test_dependencies_of_a_stage_come_before_it() -> None:
    """A stage waits only for one that runs or has ended, so none waits for ever."""
    for tier in Tier:
        before: set[str] = set()
        for stage in stages(tier, SEED):
            assert before.issuperset(stage.needs), stage.name
            before.add(stage.name)


def test_every_stage_with_java_waits_for_the_jars() -> None:
    """Style, and the tests without Java, use the time of the download."""
    for tier in Tier:
        free = {stage.name for stage in stages(tier, SEED) if "jars" not in stage.needs}
        assert free == {"check", "jars", "unit"} - ({"check"} if tier is Tier.SECOND else set())


def test_names_are_unique() -> None:
    """They are names of files, too."""
    for tier in Tier:
        names = [stage.name for stage in stages(tier, SEED)]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize(("passed", "verdict"), [(True, "passed"), (False, "FAILED")])
def test_a_report_has_a_line_for_each_stage_and_the_sum(verdict: str, *, passed: bool) -> None:
    """CPU times add up; wall times overlap, so the sum is that of the whole run."""
    outcomes = (Outcome("unit", True, 100.4, 90.6), Outcome("lanes", passed, 200.0, 300.0))
    lines = [line.split() for line in report(outcomes, 210.0).splitlines()]
    assert lines == [
        ["stage", "result", "wall", "s", "CPU", "s"],
        ["unit", "passed", "100", "91"],
        ["lanes", verdict, "200", "300"],
        ["all", verdict, "210", "391"],
    ]
