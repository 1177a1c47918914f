"""Subcommands of `medusa dlq`, one per module."""
