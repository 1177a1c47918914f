"""A user's network tested in memory: no broker, no registry, no ZooKeeper; event time by command.

All decisions are made by the production code: planner, lowering, Spark's queries, the sink, and the
rules of event time. Only the surroundings of a lane are replaced: topics, clock, registry.

    document.py      a test as written in YAML → steps
    records.py       records as written, in a document or a file → Avro, or expected values
    check.py         steps → steps ready to run: streams and schemas resolved, all mistakes reported
    compare.py       expected and actual records → differences, in words
    dead_letters.py  dead letters as a test compares them
    broker.py        topics in memory, and the producer of a sink
    lane.py          one fragment: its query, its sink, its event time
    network.py       all lanes of a network: send, advance, wait, settle, take
    run.py           a test from its first step to its verdict
    session.py       a Spark session for tests
    plugin.py        the same for pytest
"""
