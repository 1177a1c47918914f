"""Subcommands of `medusa schema`, one per module."""
