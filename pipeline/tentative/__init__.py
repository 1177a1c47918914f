"""Rules of tentative results: what a fork writes, how it is settled, how a reader merges it.

    generation.py  the results of one fork
    records.py     records of a tentative topic, and their headers
    publishing.py  which results of a fork are published when
    settling.py    which results are confirmed, replaced, undone; when a generation is done
    restoring.py   the state of a settler after a crash
    view.py        tentative and stable results as a reader sees them together
    by_time.py     ids in the order of their event times

Pure: no socket, thread, clock, environment or random.
"""
