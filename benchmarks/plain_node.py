"""Plain PySpark's jobs in sequence in one session, as a node runs Medusa's.

Commands are on stdin, one JSON object a line: `{"job", "sources", "target", "write"}`
starts a job, `{}` ends it. On stdout, one JSON object a line, too: `{"ready": …}` when the session
or a query has started, or a query has ended; and after each batch the number of records read so
far, and Spark's metrics of the state.
"""

import argparse
import json
import queue
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.box_jobs import JOBS
from benchmarks.plain_pyspark import Options, read, session, start

POLL_S = 0.05
Command = Mapping[str, Any]


def say(**what: Any) -> None:
    """Print one message."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def commands() -> "queue.Queue[Command | None]":
    """Commands from stdin; None at its end."""
    found: queue.Queue[Command | None] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            found.put(json.loads(line))
        found.put(None)

    threading.Thread(target=listen, daemon=True).start()
    return found


def progress(query: StreamingQuery) -> dict[str, Any] | None:
    """Records read and state size after the last batch; None before any."""
    last = query.lastProgress
    if last is None:
        return None
    ends = [json.loads(source.endOffset) for source in last.sources if source.endOffset]
    return {
        "read": sum(offset for end in ends for parts in end.values() for offset in parts.values()),
        "state": [
            {"rows": one.numRowsTotal, "memory_bytes": one.memoryUsedBytes}
            for one in last.stateOperators
        ],
    }


def run(spark: SparkSession, command: Command, options: Options, told: Any) -> None:
    """Run one job until the next command; a failure does not affect other jobs."""
    options = replace(
        options,
        scratch=options.scratch / command["target"],
        target=command["target"],
        job=command["job"],
        write=command["write"],
    )
    query = None
    try:
        sources = [read(spark, replace(options, source=topic)) for topic in command["sources"]]
        query = start(JOBS[options.job](sources, options.target), options)
    except PySparkException as error:
        say(failed=str(error))
    say(ready=options.job)
    before = None
    while told.empty():
        if query is not None:
            now = progress(query)
            if now is not None and now != before:
                say(**now)
                before = now
            if not query.isActive:
                say(failed=str(query.exception()))
                query = None
        threading.Event().wait(POLL_S)
    told.get()
    if query is not None:
        query.stop()
    say(ready="")


def main(arguments: list[str]) -> int:
    """Run until stdin ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--jars", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--batch-records", type=int, default=400_000)
    parser.add_argument("--memory", default="1g")
    values = vars(parser.parse_args(arguments))
    options = Options(**values, source="", target="", job="", write="")
    spark = session(options.jars, options.scratch, options.memory)
    told = commands()
    say(ready="")
    while (command := told.get()) is not None:
        run(spark, command, options, told)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
