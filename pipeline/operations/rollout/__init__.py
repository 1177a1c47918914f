"""Rollout of a deploy: the fragments that it starts, and the wait until they run."""
