"""`medusa schema …`: one verb per module."""
