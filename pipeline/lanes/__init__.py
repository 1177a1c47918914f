"""Lanes as pure rules: positions, commit markers, how a lane starts, what it still needs.

    positions.py   how far something has read
    markers.py     commit markers
    signals.py     boundary and advance records
    codec.py       all three as versioned JSON bytes
    start.py       from marker and checkpoint: start fresh, continue, or refuse
    needed.py      the oldest positions still needed
    lifecycle.py   the phases of a lane as a transition table

Pure: no socket, thread, clock, environment or random.
"""
