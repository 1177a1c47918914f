"""Event-time control of lanes: computes advances from progress and boundaries.

Pure: no socket, thread, clock, environment or random; wall time is always an argument.

    profile.py    inputs and shape of a fragment, as event time needs them
    windows.py    the ends of windows
    sessions.py   the oldest record of open sessions
    external.py   the boundary of an external stream
    derived.py    the boundary of a derived stream
    release.py    step size and rate limit of advances
    lane_time.py  event time of one lane, from all of these
    promise.py    the boundary of a lane's own output

`docs/semantics.md` states the rules.
"""
