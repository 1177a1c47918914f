"""Deploying a network: reads what is there, checks everything, then acts in ordered steps.

What would change is decided by `pipeline/planner/diff.py`, which is pure; this package is the shell
around it. It may import planner, network, catalog and names. Kafka and the registry are reached
through the small protocols in `ports.py`.
"""
