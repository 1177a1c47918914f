"""Log files of the nodes of this machine."""
