"""A registry with two versions of a type, and a schema that uses it."""

import pytest

from tests.unit.deploy.twins import TwinRegistry, World

WHEEL = '{"type":"record","name":"parts.Wheel","fields":[]}'
WIDER = WHEEL.replace("[]", '[{"name":"inch","type":"int","default":1}]')


@pytest.fixture
def registry() -> TwinRegistry:
    """A registry with the subject `wheels`."""
    made = World.new().registry
    for text in (WHEEL, WIDER):
        made.register("wheels", text)
    return made
