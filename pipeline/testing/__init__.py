"""A user's network tested in memory: no broker, no registry, no ZooKeeper; event time by command.

Everything that decides is the product's own: planner, lowering, Spark's queries, the sink, and the
rules of event time. Only what lies around a lane is replaced: topics, clock, registry.

    document.py   a test as written in YAML → steps
    records.py    records as written, in a document or a file → Avro, or what they should equal
    check.py      steps → steps that can run: streams and schemas are known, all mistakes told
    compare.py    what was expected and what came → what is different, in words
    broker.py     topics in memory, and what a sink writes through
    lane.py       one fragment: its query, its sink, its event time
    network.py    all lanes of a network: send, advance, wait, settle, take
    run.py        a test from its first step to its verdict
    session.py    a Spark session for tests
    plugin.py     the same for pytest
"""
