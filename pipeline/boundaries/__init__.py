"""Event time under our own control: progress and boundaries in, advances out.

Pure: no socket, thread, clock, environment or random; wall time is always an argument.

    profile.py    what of a fragment decides how its event time moves
    windows.py    the ends of windows
    sessions.py   how far back sessions reach
    external.py   the boundary of a stream whose producers are not ours
    derived.py    the boundary of a stream that a fragment writes
    release.py    how large a step a lane is given, and how often
    lane_time.py  all of that for one lane
    promise.py    what a lane may promise about its own output

`docs/semantics.md` states the rules.
"""
