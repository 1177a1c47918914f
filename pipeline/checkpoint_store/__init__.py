"""The checkpoint store: copies of checkpoints in a folder or bucket that several nodes reach."""
