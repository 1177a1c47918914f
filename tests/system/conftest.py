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
    """Append node status and logs to a failure report: of a remote run only its log remains."""
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
    """Undeploys the networks a test has left: a lane takes CPU time also without records."""
    yield
    for record, _ in medusa.catalog.versions.deployed():
        stop(record.network, medusa.catalog)
