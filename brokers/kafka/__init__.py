"""Kafka on real brokers: the only package that imports its driver; raises Medusa's errors."""
