"""A node: a loop that polls, decides in pure code and performs.

`events.py`, `state.py`, `status.py` and `decide.py` are pure; the other modules do the I/O.
"""
