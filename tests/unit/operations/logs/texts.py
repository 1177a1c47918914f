"""Texts of logs."""

LOG = """\
2026-01-01T00:00:00.000Z INFO node up
2026-01-01T00:00:01.000Z INFO [tolls.moving] started
2026-01-01T00:00:02.000Z ERROR [tolls.stopped] failed
  because of this
2026-01-01T00:00:03.000Z INFO [other.moving] started
"""

SPARK = """\
connecting to Kafka
26/01/01 00:00:01 WARN TaskSetManager: Lost task 0.0
java.lang.IllegalStateException: no
\tat org.apache.spark.Task
26/01/01 00:00:02 ERROR MicroBatchExecution: Query tolls.moving.3 [id = 1, runId = 2] terminated
"""
