"""What follows a deploy: which fragments it starts, and the wait until they run."""
