"""Made-up traffic: docs/connectors/generators.md."""

from connectors.generators import calls, cars, clicks, connections, prices, sensors

__all__ = ["calls", "cars", "clicks", "connections", "prices", "sensors"]
