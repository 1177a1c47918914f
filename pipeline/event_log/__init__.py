"""The event log of a participant: what was done to its networks, fragments and nodes. Pure."""
