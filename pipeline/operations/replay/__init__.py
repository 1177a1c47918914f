"""Replay: recomputation of a fragment's results from its input topics."""
