"""The fixtures that pytest finds when Medusa is installed: docs/reference/testing.md."""

from pipeline.testing.plugin import medusa_network, medusa_session

__all__ = ["medusa_network", "medusa_session"]
