"""Records that lanes and agents leave in Kafka: commit markers, signals, positions. Pure."""
