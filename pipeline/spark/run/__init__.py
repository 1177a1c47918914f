"""Execution of a lane: its start, its checkpoints, its query, its rebuild."""
