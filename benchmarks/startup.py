"""How long a user waits, and how much memory it takes.

`medusa up` until it is ready (jars in the cache), `medusa deploy` until the first output of a
stateless box, and the memory of everything that was started.

    python -m benchmarks.startup --repeat 3
"""

import argparse
import json
import subprocess
import sys
import time

from benchmarks.harness import (
    FINISHED_WITHIN_S,
    SOURCE,
    Stack,
    create_topics,
    environment,
    feed,
    median,
    medusa_command,
    project,
    reader,
    register_reading,
    stable_end,
    wait_for,
)
from pipeline.demo.memory import resident_bytes

TARGET = "bench-converted"


def measure() -> dict[str, float]:
    """One round: seconds until ready, seconds until the first output, MB of all processes."""
    with project() as stack:
        started = time.monotonic()
        up = subprocess.Popen(
            medusa_command("up"),
            cwd=stack.folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for(lambda: ready(stack, up), FINISHED_WITHIN_S, "medusa up")
            ready_s = time.monotonic() - started
            create_topics(stack, SOURCE, TARGET)
            consumer = reader(stack, TARGET, at_end=True)
            feeding = feed(stack, "steady", register_reading(stack), rate=10, warm_up=0, seconds=60)
            try:
                time.sleep(2)
                started = time.monotonic()
                stack.medusa("deploy", "-f", "stateless.yaml")
                deployed_s = time.monotonic() - started
                wait_for(lambda: stable_end(consumer, TARGET) > 0, FINISHED_WITHIN_S, "an output")
                first_s = time.monotonic() - started
                memory = resident_bytes(up.pid)
            finally:
                consumer.close()
                feeding.terminate()
                feeding.wait(30)
        finally:
            up.terminate()
            up.wait(60)
    return {"ready": ready_s, "deploy": deployed_s, "first": first_s, "memory": (memory or 0) / 1e6}


def ready(stack: Stack, up: "subprocess.Popen[bytes]") -> bool:
    """Whether the node is up, which is the last thing that `medusa up` starts."""
    if up.poll() is not None:
        raise SystemExit("medusa up ended")
    asked = subprocess.run(
        medusa_command("node", "list", "-o", "json"),
        cwd=stack.folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=FINISHED_WITHIN_S,
        check=False,
    )
    return asked.returncode == 0 and bool(json.loads(asked.stdout)["nodes"])


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
