"""Spark sessions: of a node, of a command, on a cluster."""
