"""Runs functions of users over Arrow record batches, each in a process of its own.

A deploy tries a function here, and a Python box calls it here; nothing of it runs in our processes.
See `docs/decisions/functions-run-in-a-child.md`.
"""
