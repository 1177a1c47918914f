"""Subcommands of `medusa offsets`, one per module."""
