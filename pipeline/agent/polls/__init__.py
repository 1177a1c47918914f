"""Threads that look at servers again and again, and tell the agent what they saw.

Each is a small loop with a pause; an unreachable server is told as such and asked again.
"""
