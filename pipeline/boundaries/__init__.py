"""Event time of lanes, and the plan of their batches, from progress, boundaries and ends.

Pure: no socket, thread, clock, environment or random; wall time is always an argument.

    profile.py    inputs and shape of a fragment, as event time needs them
    windows.py    the ends of windows
    sessions.py   the oldest record of open sessions
    external.py   the boundary of an external stream
    derived.py    the boundary of a derived stream
    release.py    steps and intervals of the movement of event time
    lane_time.py  event time of one lane, from all of these
    next_batch.py the plan of a lane's next batch
    promise.py    the boundary of a lane's own output

`docs/semantics.md` states the rules.
"""
