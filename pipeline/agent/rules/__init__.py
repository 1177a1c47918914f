"""The rules by which an agent decides, one file each, in the order in which they are applied.

A rule of a lane sees that lane and what all lanes share; a rule of the node sees everything. None
of them does any I/O.
"""

from pipeline.agent.rules.activity import tell_activity
from pipeline.agent.rules.assignment import assign
from pipeline.agent.rules.event_time import observe_time
from pipeline.agent.rules.planning import ask_for_plans
from pipeline.agent.rules.promises import tell_promises
from pipeline.agent.rules.reconcile import reconcile
from pipeline.agent.rules.recovery import retry_soon
from pipeline.agent.rules.rehearsal import rehearse
from pipeline.agent.rules.report import report
from pipeline.agent.rules.retention import tell_retention
from pipeline.agent.rules.rule import LaneRule, NodeRule
from pipeline.agent.rules.runs import follow_run
from pipeline.agent.rules.steering import advance
from pipeline.agent.rules.watching import watch

LANE_RULES: tuple[LaneRule, ...] = (
    assign,
    follow_run,
    observe_time,
    retry_soon,
    reconcile,
    advance,
    tell_activity,
    tell_promises,
    tell_retention,
    report,
)
NODE_RULES: tuple[NodeRule, ...] = (ask_for_plans, watch, rehearse)
