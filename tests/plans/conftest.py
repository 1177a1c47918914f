import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`pytest tests/plans --rewrite` writes the golden files anew, for review as a difference."""
    parser.addoption("--rewrite", action="store_true", help="write golden files anew")


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are written instead of compared."""
    return bool(request.config.getoption("--rewrite", default=False))
