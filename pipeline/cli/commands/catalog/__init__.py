"""The verbs of `medusa catalog`."""
