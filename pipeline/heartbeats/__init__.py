"""Heartbeats of nodes, their topic, and which nodes are suspected by them."""
