"""Federated stream processing: networks of boxes on Spark, arrows on Kafka, facts in ZooKeeper."""
