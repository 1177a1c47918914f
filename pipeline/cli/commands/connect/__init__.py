"""Subcommands of `medusa connect`."""
