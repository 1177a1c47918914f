"""Subcommands of `medusa catalog`, one per module."""
