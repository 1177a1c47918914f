"""The planner: a checked network in, fragments and topics out. Pure.

`planner.py` runs the passes (`passes/`, one file and one public function each), `explain.py`
renders the plan as stable text, `digest.py` computes its digests, `diff.py` compares it with the
deployed one. `boxes/` contains the planner's part of each kind of box. It may import
`pipeline.network`, `pipeline.names`, `pipeline.ids` and `pipeline.errors`; it never needs a JVM, a
broker or a file.
"""
