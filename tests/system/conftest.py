from collections.abc import Generator, Iterator

import pytest

from brokers.embedded.stack import EmbeddedStack
from pipeline.deploy.remove import stop
from tests.conftest import WaitFor
from tests.system.support import Installation, installation, seen_last


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failure what the nodes were doing: a run elsewhere leaves nothing but its log."""
    report = yield
    medusa = getattr(item, "funcargs", {}).get("medusa")
    if report.failed and isinstance(medusa, Installation):
        report.sections.append(("fragments and nodes", seen_last(medusa)))
    return report


@pytest.fixture(scope="session")
def medusa(
    embedded_stack: EmbeddedStack, tmp_path_factory: pytest.TempPathFactory, wait_for: WaitFor
) -> Iterator[Installation]:
    """Clients of the stack, and a folder for nodes."""
    folder = tmp_path_factory.mktemp("nodes")
    with installation(embedded_stack.settings, folder, wait_for) as found:
        yield found


@pytest.fixture
def undeployed(medusa: Installation) -> Iterator[None]:
    """No node runs what a test has left deployed: a lane takes CPU time also without records."""
    yield
    for record, _ in medusa.catalog.versions.deployed():
        stop(record.network, medusa.catalog)
