"""The planner: a tuple of passes from a checked network to a plan."""

from collections.abc import Callable
from functools import reduce

from pipeline.ids import NetworkId, ParticipantId
from pipeline.network.model import Network
from pipeline.planner.draft import Draft
from pipeline.planner.passes.check_bounds import check_bounds
from pipeline.planner.passes.check_topics import check_topics
from pipeline.planner.passes.cut import cut
from pipeline.planner.passes.follow_tentative import follow_tentative
from pipeline.planner.passes.limit_amnesia import limit_amnesia
from pipeline.planner.passes.list_topics import list_topics
from pipeline.planner.passes.merge_aggregates import merge_aggregates
from pipeline.planner.passes.name_outputs import name_outputs
from pipeline.planner.passes.push_filters import push_filters
from pipeline.planner.passes.settle_availability import settle_availability
from pipeline.planner.passes.settle_keys import settle_keys
from pipeline.planner.passes.settle_recovery import settle_recovery
from pipeline.planner.passes.share_box_settings import share_box_settings
from pipeline.planner.passes.share_limits import share_limits
from pipeline.planner.plan import Plan

Pass = Callable[[Draft], Draft]
"""A pass is pure. The first four change the network without changing any output."""

PASSES: tuple[Pass, ...] = (
    settle_keys,
    merge_aggregates,
    push_filters,
    name_outputs,
    cut,
    share_limits,
    share_box_settings,
    limit_amnesia,
    settle_recovery,
    settle_availability,
    follow_tentative,
    check_bounds,
    list_topics,
    check_topics,
)


def plan(network: Network, owner: ParticipantId) -> Plan:
    """Plan a network for the participant who deploys it.

    The same network gives the same plan, field by field.

    Raises:
        DocumentError: two streams would share a topic, Kafka would reject a topic's name, or a
            fragment cannot have the recovery or the availability that is declared for it.
    """
    draft = reduce(lambda done, step: step(done), PASSES, Draft(owner, network))
    return Plan(
        network=NetworkId(owner, network.name),
        fragments=draft.fragments,
        topics=draft.topics,
        auto_create=network.auto_create,
        retention_ms=network.retention_ms,
        notes=draft.notes,
    )
