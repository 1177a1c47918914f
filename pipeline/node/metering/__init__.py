"""Counters of a node's load: its processes, and the speed of its cores."""
