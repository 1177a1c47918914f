"""Subcommands of `medusa node`, one per module."""
