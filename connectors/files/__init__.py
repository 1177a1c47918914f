"""Files of a folder: a source that follows them as they grow, and a sink that adds whole ones."""
