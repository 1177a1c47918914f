"""Replays: results of a fragment computed again from its input topics."""
