"""Embedded Kafka and ZooKeeper on loopback, run as child processes of this process.

For trying Medusa out, for tests and for the demo. The servers keep their data in one folder and end
with the process that started them.

| module | what it does |
|---|---|
| `java` | finds a Java that is new enough |
| `jars` | lists the jars, verifies checksums, builds class paths |
| `fetch` | downloads the jars, once |
| `guard` | the small process between us and a child: the child never outlives us |
| `processes` | starts and stops children through guards, with their logs |
| `kafka`, `zookeeper` | configuration and readiness check of each server |
| `control` | the lock and the file by which another process finds a running stack |
| `stack` | starts and stops all servers together |
"""
