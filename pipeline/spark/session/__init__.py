"""Spark sessions: of a node, of a command, on a cluster; and what warms them up."""
