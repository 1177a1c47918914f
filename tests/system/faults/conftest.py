from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from tests.faults.cases import CASES
from tests.faults.scenario import Report, run
from tests.faults.strikes import FAULTS
from tests.faults.world import Worlds


class Strike(Protocol):
    """Runs networks through faults."""

    def __call__(self, cases: Sequence[str], faults: Sequence[str], seed: int = 1) -> Report:
        """The report; fails, with all findings, when anything is not exact."""


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory, jar_cache: Path) -> Iterator[Worlds]:
    """Servers and nodes of their own, since they are killed."""
    found = Worlds(tmp_path_factory.mktemp("faults"), jar_cache)
    try:
        yield found
    finally:
        found.drop()


@pytest.fixture
def strike(worlds: Worlds) -> Strike:
    """Runs cases by name through faults by name, in their order."""

    def struck(cases: Sequence[str], faults: Sequence[str], seed: int = 1) -> Report:
        fine = False
        try:
            report = run(
                worlds.get(), [CASES[c] for c in cases], [FAULTS[f] for f in faults], seed, print
            )
            fine = not report.findings
        finally:
            if not fine:
                worlds.drop()
        assert fine, report.words()
        assert all(verdict.expected for verdict in report.verdicts)
        return report

    return struck
