"""The rules of an agent's decisions, one module each; applied by `pipeline/agent/decide.py`.

A lane rule reads one lane and the shared state; a node rule reads the whole state. All are pure.
"""
