"""`medusa example …`: one verb per module."""
