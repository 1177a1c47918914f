"""The planner: a checked network in, fragments and topics out. Pure.

`planner.py` runs the passes (`passes/`, one file and one public function each), `explain.py` says
in stable text what came out, `digest.py` names it by a hash, `diff.py` compares it with what is
deployed. `boxes/` holds what the planner has to know about each kind of box. It may import
`pipeline.network`, `pipeline.names`, `pipeline.ids` and `pipeline.errors`; it never needs a JVM, a
broker or a file.
"""
