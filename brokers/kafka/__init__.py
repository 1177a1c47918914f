"""Kafka: the only home of its driver; errors leave it as ours."""
