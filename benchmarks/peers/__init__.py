"""Kafka Streams and Flink as sides, each a Java program that is compiled at run time."""
