"""Polling threads: they read servers periodically and send the results to the agent as events.

Each is a small loop with a pause; an unreachable server is reported as such and polled again.
"""
