"""The rules by which an agent decides, one file each; `pipeline/agent/decide.py` applies them.

A rule of a lane sees that lane and what all lanes share; a rule of the node sees everything. None
of them does any I/O.
"""
