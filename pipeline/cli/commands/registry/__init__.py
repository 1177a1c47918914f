"""Subcommands of `medusa registry`, one per module."""
