"""`medusa node …`: one verb per module."""
