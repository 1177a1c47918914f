"""`pace` and `state_limit` of a network or a box: the time between batches, the size of state."""

from pipeline import durations, sizes
from pipeline.ids import BoxName
from pipeline.network.fields import Fields
from pipeline.network.model import BoxSettings

PACE_MAX_MS = durations.parse("60s")
STATE_LIMIT_MIN_BYTES = sizes.parse("16MiB")
STATE_LIMIT_MAX_BYTES = sizes.parse("64TiB")

_STATE_LIMIT = "state_limit"


def read_pace(fields: Fields) -> int | None:
    """The least time between two batches, in milliseconds.

    None: missing, or invalid (reported).
    """
    return fields.duration_between("pace", low=0, high=PACE_MAX_MS)


def read_state_limit(fields: Fields) -> int | None:
    """The size of the state at which a lane reads no more input, in bytes.

    None: missing, or invalid (reported).
    """
    low, high = STATE_LIMIT_MIN_BYTES, STATE_LIMIT_MAX_BYTES
    return fields.size_between(_STATE_LIMIT, low=low, high=high)


def read_box_settings(
    name: BoxName, fields: Fields, kind: str, stateful_kinds: tuple[str, ...]
) -> BoxSettings:
    """Read both of a box; a limit of a box without state is reported.

    Args:
        name: the box.
        fields: its entries.
        kind: its kind.
        stateful_kinds: the kinds of boxes that keep state.
    """
    pace_ms = read_pace(fields)
    if kind in stateful_kinds:
        return BoxSettings(name, pace_ms, read_state_limit(fields))
    if fields.has(_STATE_LIMIT):
        fields.known.append(_STATE_LIMIT)
        fields.problem(
            f"{_STATE_LIMIT} of {fields.what}: a {kind} has no state",
            fields.line_of(_STATE_LIMIT),
            hint=f"leave it out; these have state: {', '.join(stateful_kinds)}",
        )
    return BoxSettings(name, pace_ms)
