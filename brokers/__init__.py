"""Everything that speaks to Kafka and ZooKeeper: the only home of their drivers."""
