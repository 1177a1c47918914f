"""Rules of lanes: sources, commit markers of batches, starts, limits, positions still needed.

    lifecycle.py          the phases of a lane as a transition table
    sources.py            source ids, and markers under the names of another plan
    batch.py              the marker of a batch
    continuity.py         invariants over consecutive markers
    needed.py             the oldest positions still needed
    dead_letter_limits.py counts of dead letters against `stop_above`
    start/                decision and plan of a start

Pure: no socket, thread, clock, environment or random.
"""
