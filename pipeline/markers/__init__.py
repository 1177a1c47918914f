"""Control records of lanes and agents in Kafka: commit markers, signals, positions. Pure."""
