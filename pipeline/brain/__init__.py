"""The node agent's loop: events in, pure decisions, effects out.

    events.py   what the loop is told, and what it does
    state.py    what an agent knows
    decide.py   (state, event, now) → (state, effects)
    status.py   what is reported of a fragment

These four are pure: no socket, thread, clock, environment or random.
"""
