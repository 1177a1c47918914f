"""`medusa config …`: one verb per module."""
