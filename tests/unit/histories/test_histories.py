"""A few random deploy histories in memory; `python -m tests.histories` runs any number."""

from types import ModuleType

import pytest

from tests.histories.history import draw, run, written
from tests.histories.mutants import (
    batch_exceeds_its_plan,
    boundary_is_not_covered,
    equals_are_displaced,
    followers_are_level,
    followers_stay,
    gaps_are_published,
    late_records_return,
    limits_are_not_kept,
    needed_is_the_end,
    pieces_close_early,
    promise_is_early,
    queries_are_taken_early,
    reliability_is_computed,
    repeats_are_not_compared,
    repeats_are_written,
    suspects_are_not_fenced,
    trims_forget_rebuilds,
    watermark_is_early,
)
from tests.profiles import examples

KINDS = frozenset(
    {"lateness", "retention", "restart", "set_back", "grown", "select", "window", "move", "vacate"}
    | {"reliability", "suspect", "trust", "take_over", "priority", "crowd", "trim"}
)

ONCE_WRONG = {
    "batch 0 was planned before its input grew": (
        288,
        "drain:679656 retype:564347 run:436076 grown:444927",
    ),
    "a window had promised more than its derived input": (
        17,
        "run:366347 move_in:56490 produce:879894 drain:665709 rollback:43330",
    ),
    "a box of another kind took a promise over": (
        96,
        "run:748928 rename_inner:1002935 produce:128026 drain:446163 rename_inner:578815",
    ),
    "an input was made again below a state": (
        97,
        "run:661198 produce:864251 made_again:491686",
    ),
    "a partition came before its stream was left": (
        478,
        "run:610461 grown:652606 add_input:704451 produce:717418 remove_input:44180",
    ),
    "a lane of an earlier version began after a later deploy had decided": (
        312595,
        (
            "produce:616155 run:402255 move_out:847225 produce:561940 run:1037180 move_in:526532 "
            "move_out:137978"
        ),
    ),
    "what a late lane was to pass over was to be read": (
        101303,
        (
            "rollback:543627 rename_topic:545288 drain:715926 move_in:538264 rollback:838353 "
            "run:747627 rollback:824329 retention:700621 rollback:360784"
        ),
    ),
    "an input was made again while its reader started": (
        510250,
        "run:392272 rename_last:199298 run:915574 made_again:878698",
    ),
    "a fragment came back to its own topic before it had begun in another one": (
        805021,
        (
            "rename_stream:613006 rename_topic:177371 rollback:813342 rollback:500783 "
            "rename_last:778954 rename_last:780231 rollback:673813"
        ),
    ),
    "what was chosen for a state counted for less than a late lane": (
        805583,
        (
            "produce:322822 run:420672 run:131262 move_out:978879 produce:576980 drain:790243 "
            "add_input:686667 drain:540310 move_in:105656 rollback:1018551 run:111007 "
            "move_in:43100"
        ),
    ),
    "a rebuild took in what its lane had begun before, and not read": (
        820027,
        "run:600829 remove_input:104194 run:225511 retype:1022430",
    ),
    "a writer had moved to another output before its successor began": (
        905521,
        (
            "run:848237 rename_last:762185 rename_last:714269 produce:1006494 produce:227787 "
            "produce:551773 take_over:663544 produce:478499 produce:71492 drain:582255"
        ),
    ),
    "a fragment that was to begin anew was moved before it began": (
        906553,
        (
            "produce:979936 run:978596 rename_last:439221 rename_last:956867 rename_topic:394364 "
            "rename_stream:16312"
        ),
    ),
    "a fragment that was to begin anew went back to an output of its own": (
        907891,
        (
            "rename_topic:118405 retention:270534 run:240489 drain:240489 rename_last:831534 "
            "produce:616603 rename_topic:4206 rollback:1030285 rename_topic:353788 rollback:46633"
        ),
    ),
    "what was decided for another output was done in the fragment's own one": (
        115,
        (
            "retention:612416 move_in:323050 rename_inner:346269 move_out:899034 "
            "rename_last:488691 move_in:1001185 rollback:651441"
        ),
    ),
    "a fragment went back to an output of its own, and had never run": (
        907891,
        (
            "rename_topic:118405 retention:270534 rename_last:831534 rename_topic:4206 "
            "rollback:1030285 rename_topic:353788 rollback:46633"
        ),
    ),
    "an input was asked for first, and then the state that was made without it": (
        300089,
        "run:508313 take_over:795304 run:391996 add_input:988974 take_over:688092",
    ),
    "what a late lane had begun came back with its inputs, and the reference had forgotten it": (
        500697,
        (
            "run:311271 move_in:485104 run:833678 rollback:379329 run:842891 rename_topic:49516 "
            "move_in:261860"
        ),
    ),
    "a lane began late whose fragment was gone": (
        902138,
        (
            "run:2022 made_again:643382 produce:509368 rollback:621872 run:826254 move_in:582568 "
            "take_over:734773"
        ),
    ),
    "a fragment that was to begin anew was gone before it began": (
        31011,
        (
            "run:983685 rename_topic:9948 rollback:74653 rename_last:281906 produce:378338 "
            "rename_last:400388 rollback:411452 rollback:660966"
        ),
    ),
    "the first markers of a lane that took an output over contradicted each other": (
        10,
        (
            "run:432219 redrive:582003 drain:1027783 rename_last:550127 move_out:806184 "
            "produce:576094 drain:374258 rename_last:955745"
        ),
    ),
    "a rebuild skipped what its source had skipped": (
        907045,
        (
            "produce:29278 run:764247 run:229231 add_input:546107 rename_last:640969 run:982461 "
            "move_out:943092"
        ),
    ),
    "a lane of a takeover that was given up began late, and was taken for the fragment's own": (
        500434,
        "run:440358 rename_inner:545064 rename_last:451309 run:110372 rollback:228792",
    ),
    "a lane began late whose fragment had been removed and was deployed again": (
        500167,
        (
            "run:269783 retention:981614 run:954064 rename_last:273861 retention:573090 "
            "rename_last:708823 rename_topic:921433 run:590628 rollback:864655 rollback:302398"
        ),
    ),
    "a discarded follower of a move did not follow as a secondary": (
        20236,
        "run:92373 vacate:691074 reliability:208572",
    ),
}


@pytest.mark.parametrize(("seed", "steps"), ONCE_WRONG.values(), ids=ONCE_WRONG)
def test_former_defects_are_fixed(seed: int, steps: str) -> None:
    """Shortened histories that have found a defect."""
    outcome = run(written(seed, steps))
    assert not outcome.wrong, "\n".join(outcome.log)


@pytest.mark.parametrize("seed", range(examples(60)))
def test_results_equal_the_reference(seed: int) -> None:
    """No result is lost, repeated or different, for any deploys and failures."""
    outcome = run(draw(seed, KINDS))
    assert not outcome.wrong, "\n".join(outcome.log)


@pytest.mark.parametrize("seed", range(examples(40)))
def test_what_is_left_out_is_in_a_gap_that_a_marker_records(seed: int) -> None:
    """States that are lost are not built again; all other results equal the reference."""
    outcome = run(draw(seed, KINDS - {"reliability"} | {"forget"}))
    assert not outcome.wrong, "\n".join(outcome.log)


@pytest.mark.parametrize(
    ("mutant", "seeds", "found_by"),
    [
        (repeats_are_written, 40, 0),
        (needed_is_the_end, 40, 2),
        (promise_is_early, 40, 4),
        (boundary_is_not_covered, 40, 5),
        (watermark_is_early, 40, 2),
        (batch_exceeds_its_plan, 40, 1),
        (pieces_close_early, 40, 2),
        (late_records_return, 40, 4),
        (followers_are_level, 60, 18),
        (queries_are_taken_early, 60, 7),
        (followers_stay, 60, 7),
        (reliability_is_computed, 10, 0),
        (suspects_are_not_fenced, 10, 0),
        (equals_are_displaced, 20, 12),
        (limits_are_not_kept, 20, 12),
        (gaps_are_published, 60, 33),
    ],
)
def test_a_planted_defect_is_found(mutant: ModuleType, seeds: int, found_by: int) -> None:
    """The reference differs from it.

    `found_by`: the first seed that has found it, which is tried first; after a change of what a
    seed generates another one finds it.
    """
    kinds = frozenset(mutant.KINDS.split(","))
    with mutant.mutated():
        assert any(run(draw(seed, kinds)).wrong for seed in (found_by, *range(seeds)))


def test_a_batch_that_reads_other_records_when_repeated_is_found() -> None:
    """Few histories trigger it; without the defect this one is correct."""
    script = written(465, "produce:128688 run:129230 restart:897871")
    assert not run(script).wrong
    with repeats_are_not_compared.mutated():
        assert [one.kind for one in run(script).wrong][:1] == ["lost"]


def test_a_removal_of_records_that_a_rebuild_needs_is_found() -> None:
    """Few histories trigger it; without the defect this one is correct."""
    script = draw(50, frozenset(trims_forget_rebuilds.KINDS.split(",")))
    assert not run(script).wrong
    with trims_forget_rebuilds.mutated():
        assert [one.kind for one in run(script).wrong][:1] == ["stopped"]
