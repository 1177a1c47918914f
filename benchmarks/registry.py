"""Throughput and latency of registrations and reads of Medusa's schema registry.

The registry is that of `medusa up`: in its process, with its schemas in ZooKeeper, over loopback.
The client is one process with so many open connections, each of which sends the next request after
a response; it uses the same cores.

    python -m benchmarks.registry --connections 32
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from benchmarks.harness import percentile, running_stack

MEDIA = "application/vnd.schemaregistry.v1+json"
SCHEMAS = 200
Request = Callable[[int], bytes]
"""n → the n-th request, in bytes."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A kind of request, its count, and latencies in ms."""

    what: str
    rate: float
    p50: float
    p99: float


def get(path: str) -> bytes:
    """A GET request."""
    return f"GET {path} HTTP/1.1\r\nHost: r\r\nAccept: {MEDIA}\r\n\r\n".encode()


def post(path: str, body: object) -> bytes:
    """A POST request."""
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: r\r\nContent-Type: {MEDIA}\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


def schema(number: int) -> str:
    """A schema unique to the number."""
    fields = [{"name": f"field_{n}", "type": "double", "default": 0} for n in range(10)]
    fields.append({"name": f"of_{number}", "type": ["null", "string"], "default": None})
    return json.dumps({"type": "record", "name": "Reading", "fields": fields})


async def answered(reader: asyncio.StreamReader) -> None:
    """Read one response.

    Raises:
        SystemExit: its status is not 200.
    """
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    lengths = [line for line in head.lower().split("\r\n") if line.startswith("content-length:")]
    body = await reader.readexactly(int(lengths[0].partition(":")[2]))
    if " 200 " not in head.partition("\r\n")[0]:
        raise SystemExit(f"{head.partition(chr(13))[0]}: {body.decode()}")


async def measure(
    what: str, url: str, connections: int, seconds: float, request: Request
) -> Measured:
    """Send requests on all connections for some time."""
    late: list[float] = []
    parts = urlsplit(url)
    numbers = iter(range(10**9))
    end = time.monotonic() + seconds

    async def client() -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        while (begun := time.monotonic()) < end:
            writer.write(request(next(numbers)))
            await answered(reader)
            late.append((time.monotonic() - begun) * 1_000)
        writer.close()

    started = time.monotonic()
    await asyncio.gather(*(client() for _ in range(connections)))
    rate = len(late) / (time.monotonic() - started)
    return Measured(what, rate, percentile(late, 0.5), percentile(late, 0.99))


async def everything(url: str, connections: int, seconds: float) -> list[Measured]:
    """Run all measurements in order."""

    async def one(what: str, request: Request, for_s: float = seconds) -> Measured:
        return await measure(what, url, connections, for_s, request)

    def known(number: int) -> bytes:
        return post(f"/subjects/known-{number % SCHEMAS}/versions", {"schema": schema(10**9)})

    await one("warm-up", known, 3.0)
    return [
        await one(
            "register, a new schema under a new subject",
            lambda n: post(f"/subjects/new-{n}/versions", {"schema": schema(n)}),
        ),
        await one("register, known already", known),
        await one("read by id", lambda n: get(f"/schemas/ids/{n % SCHEMAS + 1}")),
        await one(
            "read the latest version",
            lambda n: get(f"/subjects/known-{n % SCHEMAS}/versions/latest"),
        ),
    ]


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=8.0, help="for each line (%(default)s)")
    options = parser.parse_args(arguments)
    with running_stack() as stack:
        found = asyncio.run(everything(stack.registry_url, options.connections, options.seconds))
    print("\n| what | a second | p50 | p99 |\n|---|---|---|---|")
    for one in found:
        print(f"| {one.what} | {one.rate:,.0f} | {one.p50:.1f} ms | {one.p99:.1f} ms |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
