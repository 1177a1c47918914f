"""Subcommands of `medusa config`, one per module."""
