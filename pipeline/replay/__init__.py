"""Replay: results recomputed from the input log, for a separate topic or as corrections."""
