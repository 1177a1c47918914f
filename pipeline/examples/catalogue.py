"""The list of examples."""

from collections.abc import Mapping
from types import MappingProxyType

from pipeline.examples.example import Example
from pipeline.examples.prices import PRICES
from pipeline.examples.sensors import SENSORS
from pipeline.examples.tolls import TOLLS

EXAMPLES: Mapping[str, Example] = MappingProxyType(
    {example.name: example for example in (TOLLS, PRICES, SENSORS)}
)
"""By name."""
