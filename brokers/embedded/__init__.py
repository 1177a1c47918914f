"""Kafka and ZooKeeper on this machine alone: fetched once, started as children, watched, stopped.

For trying things out, for tests and for the demo. Everything listens on loopback, keeps its data
in one folder, and ends with the process that started it.

| module | what it does |
|---|---|
| `java` | finds a Java that is new enough |
| `jars` | fetches the jars once, checks them, says which class path is for whom |
| `guard` | the small process between us and a child: the child never outlives us |
| `processes` | starts and stops children through guards, with their logs |
| `kafka`, `zookeeper` | how one of each is configured, and when it is ready |
| `control` | the lock and the file by which another process finds a running stack |
| `stack` | all of it together |
"""
