"""Subcommands of `medusa example`, one per module."""
