"""Whether an installation is as it has to be: what was seen of it, and what that means."""
