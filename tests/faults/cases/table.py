"""The table of cases; a new kind of box or network is one more line."""

from collections.abc import Mapping

from tests.faults.case import Case
from tests.faults.cases.aggregates import AGGREGATES
from tests.faults.cases.as_of import AS_OF
from tests.faults.cases.bounded import OUTER_JOIN_BOUNDED, WINDOW_BOUNDED
from tests.faults.cases.chain import CHAIN
from tests.faults.cases.deduplicate import DEDUPLICATE
from tests.faults.cases.flat_map import FLAT_MAP, FLAT_MAP_WINDOW
from tests.faults.cases.join import JOIN
from tests.faults.cases.outer_join import LEFT_JOIN, OUTER_JOIN, RIGHT_JOIN
from tests.faults.cases.prices import PRICES
from tests.faults.cases.python import PYTHON
from tests.faults.cases.route import ROUTE
from tests.faults.cases.sensors import SENSORS
from tests.faults.cases.sessions import SESSIONS
from tests.faults.cases.sliding import SLIDING
from tests.faults.cases.stateless import FILTER, MAP
from tests.faults.cases.tolls import TOLLS
from tests.faults.cases.top import TOP
from tests.faults.cases.union import UNION, UNION_WINDOW
from tests.faults.cases.window import WINDOW, WINDOW_OF_WRONG_CLOCKS, WINDOW_WITH_IDLENESS
from tests.faults.cases.windows_joined import WINDOWS_JOINED

CASES: Mapping[str, Case] = {
    case.name: case
    for case in (
        FILTER,
        MAP,
        PYTHON,
        FLAT_MAP,
        FLAT_MAP_WINDOW,
        ROUTE,
        WINDOW,
        WINDOW_WITH_IDLENESS,
        WINDOW_OF_WRONG_CLOCKS,
        WINDOW_BOUNDED,
        AGGREGATES,
        SLIDING,
        SESSIONS,
        TOP,
        JOIN,
        OUTER_JOIN,
        LEFT_JOIN,
        RIGHT_JOIN,
        OUTER_JOIN_BOUNDED,
        AS_OF,
        DEDUPLICATE,
        UNION,
        UNION_WINDOW,
        CHAIN,
        WINDOWS_JOINED,
        TOLLS,
        PRICES,
        SENSORS,
    )
}
