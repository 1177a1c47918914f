"""The stages of `make test` and `make test-all`: the command of each, and a run's report. Pure.

A stage is one process tree with servers, ports and folders of its own; stages share nothing but
the caches of downloads, so any two of them may run at the same time. Tests that use the same
servers are in one stage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

BIN = ".venv/bin"
LOGS = "build/stages"
"""Folder of logs, and of what the tests of each stage write; below the root of the tree."""
CI_SEED = 20_261_124
"""The first tier draws the same examples in every run; `make test-all` draws others each time."""
SPARING: Mapping[str, str] = {
    "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    "PYSPARK_SUBMIT_ARGS": "--conf spark.sql.streaming.pollingDelay=100ms pyspark-shell",
}
"""Java's fast compiler only, since most test processes end, or are killed, before the optimising
one pays off, with the code cache that Java by default reserves for both: with a fifth of it, a
node whose fragments are restarted often fills the cache, and compiles nothing more.
And a lane without new records polls the broker ten times a second, not a hundred times."""
SLOWEST = ("--durations=60", "--durations-min=0.5")


class Tier(Enum):
    """Extent of a run: the tests of CI, or all."""

    FIRST = "first"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Stage:
    """One command.

    Args:
        name: letters, digits and dashes; also the name of its log file.
        command: argument vector.
        environment: further variables.
        alone: whether it takes all processors, so that no other stage runs at the same time.
        needs: names of earlier stages whose results it needs.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    alone: bool = False
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result, times and CPU seconds of a stage."""

    stage: str
    passed: bool
    wall_s: float
    cpu_s: float


CHECK = Stage("check", ("make", "--no-print-directory", "check"))
JARS = Stage("jars", (f"{BIN}/python", "-m", "tools.fetch_jars"))
UNIT = ("unit", ("tests/tidy", "tests/unit", "tests/plans"))
"""The tests without Java; they start while the jars are fetched."""
FIRST: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("lanes", ("tests/system/lanes",)),
    ("faults", ("tests/system/faults",)),
    ("nodes", ("tests/system/nodes",)),
    ("commands", ("tests/system/commands",)),
    ("spark", ("tests/system/spark",)),
    ("steered", ("tests/system/steered",)),
    (
        "servers",
        (
            "tests/conformance",
            "tests/system/brokers",
            "tests/system/catalog",
            "tests/system/registry",
        ),
    ),
    ("connectors", ("tests/system/connectors",)),
    ("embedded", ("tests/system/embedded",)),
    ("secured", ("tests/system/secured",)),
)
"""Groups of tests that need the jars, the longest first, so that no long one runs last."""
SECOND: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("outages", ("tests/system/outages",)),
    ("cluster", ("tests/system/cluster",)),
    ("clients", ("tests/system/clients",)),
)
"""Groups of `make test-all` only."""
MATRIX_SHARES = 7
"""Shares of the cases of the fault matrix; a run tests each with a seventh of the faults."""


def stages(tier: Tier, seed: int) -> tuple[Stage, ...]:
    """The stages of a tier, in the order of their start.

    Args:
        tier: the tier.
        seed: for random examples and faults; the first tier always draws with `CI_SEED`.
    """
    if tier is Tier.FIRST:
        drawn = ("--hypothesis-profile=ci", f"--hypothesis-seed={CI_SEED}")
        chosen = ("-m", "not second_tier", *drawn)
        return _all_tests(FIRST, chosen)
    drawn = ("--hypothesis-profile=deep", f"--hypothesis-seed={seed}")
    matrix = (_matrix(share, seed) for share in range(1, MATRIX_SHARES + 1))
    return (*_all_tests((*FIRST, *SECOND), drawn), *matrix)


def _all_tests(
    groups: Sequence[tuple[str, tuple[str, ...]]], options: tuple[str, ...]
) -> tuple[Stage, ...]:
    """The style checks first, so that their errors are reported within a minute."""
    with_jars = (_tests(name, paths, options, JARS.name) for name, paths in groups)
    return (CHECK, JARS, _tests(*UNIT, options), *with_jars)


def _tests(name: str, paths: tuple[str, ...], options: tuple[str, ...], *needs: str) -> Stage:
    # Concurrent stages would overwrite each other's cache and delete each other's
    # folders; so the files of a failed one remain until the next run.
    own = ("-p", "no:cacheprovider", f"--basetemp={LOGS}/{name}")
    command = (f"{BIN}/pytest", *own, *SLOWEST, *options, *paths)
    return Stage(name, command, SPARING, needs=needs)


def _matrix(share: int, seed: int) -> Stage:
    """A share of the cases with a selection of the faults; the seed determines the selection."""
    turn = seed % MATRIX_SHARES + 1
    chosen = (f"--share={share}/{MATRIX_SHARES}", f"--turn={turn}/{MATRIX_SHARES}")
    program = (f"{BIN}/python", "-m", "tests.faults.run")
    command = (*program, "--together", "--chain", *chosen, f"--seed={seed}")
    return Stage(f"matrix-{share}", command, SPARING, alone=True, needs=(JARS.name,))


def report(outcomes: Sequence[Outcome], wall_s: float) -> str:
    """A table of the times of each stage, and the sum; wall times overlap, CPU times add up."""
    rows = [("stage", "result", "wall s", "CPU s")]
    rows += [
        (one.stage, "passed" if one.passed else "FAILED", f"{one.wall_s:.0f}", f"{one.cpu_s:.0f}")
        for one in outcomes
    ]
    everything = all(one.passed for one in outcomes)
    cpu_s = sum(one.cpu_s for one in outcomes)
    rows.append(("all", "passed" if everything else "FAILED", f"{wall_s:.0f}", f"{cpu_s:.0f}"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        f"{name:<{widths[0]}}  {result:<{widths[1]}}  {wall:>{widths[2]}}  {cpu:>{widths[3]}}"
        for name, result, wall, cpu in rows
    )
