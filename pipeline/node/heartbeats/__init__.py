"""Sending of a node's heartbeats, by a child process."""
