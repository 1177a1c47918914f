"""The verbs of `medusa dlq`, one module each."""
