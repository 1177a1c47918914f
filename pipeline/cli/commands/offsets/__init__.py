"""The verbs of `medusa offsets`."""
