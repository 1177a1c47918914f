"""Heartbeats of nodes, their topic, which nodes are suspected by them, and steps of lanes."""
