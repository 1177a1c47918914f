"""Subcommands of `medusa contract`, one per module."""
