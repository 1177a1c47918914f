"""`medusa registry …`: one verb per module."""
