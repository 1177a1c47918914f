"""The stages of a run of tests: the command of each, and the report. Pure.

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
    "PYTHONDONTWRITEBYTECODE": "",
}
"""Java's fast compiler only, since most test processes end, or are killed, before the optimising
one pays off, with the code cache that Java by default reserves for both: with a fifth of it, a
node whose fragments are restarted often fills the cache, and compiles nothing more.
And a lane without new records polls the broker ten times a second, not a hundred times. Python
keeps what it has compiled, also where the shell forbids it: a stage starts many processes."""
SLOWEST = ("--durations=60", "--durations-min=0.5")


class Tier(Enum):
    """Extent of a run: the tests of CI, those that CI leaves out, or all."""

    FIRST = "first"
    SECOND = "second"
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
IN_BOTH = ("lanes", "faults", "nodes", "commands", "spark", "steered", "embedded")
"""Groups of the first tier some of whose tests are of the second."""
SECOND: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("outages", ("tests/system/outages",)),
    ("cluster", ("tests/system/cluster",)),
    ("clients", ("tests/system/clients",)),
)
"""Groups of the second tier only."""
MATRIX_SHARES = 7
"""Shares of the cases of the fault matrix; a run tests each with a seventh of the faults."""


def stages(tier: Tier, seed: int) -> tuple[Stage, ...]:
    """The stages of a tier, in the order of their start.

    The style checks come first, so that their errors are reported within a minute.

    Args:
        tier: the tier.
        seed: for random examples and faults; the first tier always draws with `CI_SEED`.
    """
    if tier is Tier.FIRST:
        drawn = ("--hypothesis-profile=ci", f"--hypothesis-seed={CI_SEED}")
        chosen = ("-m", "not second_tier", *drawn)
        return (CHECK, JARS, _tests(*UNIT, chosen), *_with_jars(FIRST, chosen))
    drawn = ("--hypothesis-profile=deep", f"--hypothesis-seed={seed}")
    matrix = tuple(_matrix(share, seed) for share in range(1, MATRIX_SHARES + 1))
    if tier is Tier.ALL:
        tests = (_tests(*UNIT, drawn), *_with_jars((*FIRST, *SECOND), drawn))
        return (CHECK, JARS, *tests, *matrix)
    both = [group for group in FIRST if group[0] in IN_BOTH]
    left_out = (*_with_jars(both, ("-m", "second_tier", *drawn)), *_with_jars(SECOND, drawn))
    return (JARS, _tests(*UNIT, drawn), *left_out, *matrix)


def named(of: Sequence[Stage], names: Sequence[str]) -> tuple[Stage, ...]:
    """Those with the names, in their order; without names all of them.

    Raises:
        ValueError: no stage has a name.
    """
    if unknown := set(names) - {stage.name for stage in of}:
        known = ", ".join(stage.name for stage in of)
        raise ValueError(f"no stage is called {', '.join(sorted(unknown))}; there are {known}")
    return tuple(stage for stage in of if not names or stage.name in names)


def _with_jars(
    groups: Sequence[tuple[str, tuple[str, ...]]], options: tuple[str, ...]
) -> tuple[Stage, ...]:
    return tuple(_tests(name, paths, options, JARS.name) for name, paths in groups)


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
