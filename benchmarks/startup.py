"""Startup time and memory.

`medusa up` until it is ready (jars in the cache), `medusa deploy` until the first output of a
stateless box, and the memory of all started processes.

    python -m benchmarks.startup --repeat 3
"""

import argparse
import sys
import time

from benchmarks.harness import (
    FINISHED_WITHIN_S,
    SOURCE,
    create_topics,
    feed,
    median,
    reader,
    register_reading,
    running_stack,
    stable_end,
    wait_for,
)
from pipeline.examples.memory import resident_bytes

TARGET = "bench-converted"


def measure() -> dict[str, float]:
    """One round: seconds until ready, seconds until the first output, MB of all processes."""
    began = time.monotonic()
    with running_stack() as stack:
        ready_s = time.monotonic() - began
        create_topics(stack, SOURCE, TARGET)
        consumer = reader(stack, TARGET, at_end=True)
        feeding = feed(stack, "steady", register_reading(stack), rate=10, warm_up=0, seconds=60)
        try:
            time.sleep(2)
            began = time.monotonic()
            stack.medusa("deploy", "-f", "stateless.yaml")
            deployed_s = time.monotonic() - began
            wait_for(lambda: stable_end(consumer, TARGET) > 0, FINISHED_WITHIN_S, "an output")
            first_s = time.monotonic() - began
            memory = resident_bytes(stack.pid)
        finally:
            consumer.close()
            feeding.terminate()
            feeding.wait(30)
    return {"ready": ready_s, "deploy": deployed_s, "first": first_s, "memory": (memory or 0) / 1e6}


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(arguments)
    rounds = []
    for _ in range(options.repeat):
        rounds.append(measure())
        print({name: round(value, 1) for name, value in rounds[-1].items()}, flush=True)
    middle = {name: median([r[name] for r in rounds]) for name in rounds[0]}
    print(f"\nmedians of {options.repeat} rounds")
    print(f"medusa up until ready:                  {middle['ready']:6.1f} s")
    print(f"medusa deploy until the command ends:   {middle['deploy']:6.1f} s")
    print(f"medusa deploy until the first output:   {middle['first']:6.1f} s")
    print(f"memory of stack and node:               {middle['memory']:6.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
