"""Clients of Kafka and ZooKeeper; no other package imports their drivers."""
