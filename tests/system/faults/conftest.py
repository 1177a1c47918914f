from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from tests.faults.case import Case
from tests.faults.cases import CASES
from tests.faults.scenario import Report, run
from tests.faults.strikes import FAULTS
from tests.faults.world import Worlds


class Strike(Protocol):
    """Runs networks through faults."""

    def __call__(self, cases: Sequence[str | Case], faults: Sequence[str], seed: int = 1) -> Report:
        """Return the report; fail, with all findings, when a result is not exact."""


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory, jar_cache: Path) -> Iterator[Worlds]:
    """Separate servers and nodes, since they are killed."""
    found = Worlds(tmp_path_factory.mktemp("faults"), jar_cache)
    try:
        yield found
    finally:
        found.drop()


@pytest.fixture
def strike(worlds: Worlds) -> Strike:
    """Runs cases, some by name, through faults by name, in their order."""

    def struck(cases: Sequence[str | Case], faults: Sequence[str], seed: int = 1) -> Report:
        fine = False
        try:
            chosen = [CASES[one] if isinstance(one, str) else one for one in cases]
            report = run(worlds.get(), chosen, [FAULTS[f] for f in faults], seed, print)
            fine = not report.findings
        finally:
            if not fine:
                worlds.drop()
        assert fine, report.words()
        assert all(verdict.expected for verdict in report.verdicts)
        return report

    return struck
