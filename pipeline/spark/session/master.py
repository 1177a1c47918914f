"""Free resources of a cluster's workers, requested from its master by Spark's RPC.

It takes a Java process of a few seconds, but no application. PySpark has no call for it; only this
module depends on these internals of Spark.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.java_gateway import launch_gateway

from pipeline.counting import counted
from pipeline.errors import UnavailableError
from pipeline.settings import Settings
from pipeline.spark.session.cluster import addresses, own_address, reason

_ANSWERS_WITHIN: Final = "10s"
_ENDS_WITHIN_S: Final = 10.0
_MB: Final = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}
_ALIVE: Final = "ALIVE"


@dataclass(frozen=True, slots=True)
class WorkerResources:
    """Free resources of a live worker."""

    cores: int
    memory_mb: int


def look_at_master(settings: Settings) -> str:
    """Describe the free resources of the configured master's workers.

    Raises:
        UnavailableError: it does not answer, or no worker has capacity for an executor.
    """
    master = settings.spark_master
    return words(_workers(master, own_address(master)), settings)


def words(workers: tuple[WorkerResources, ...], settings: Settings) -> str:
    """Describe the free resources of workers.

    Raises:
        UnavailableError: none has capacity for an executor.
    """
    wanted_mb = megabytes(settings.spark_executor_memory)
    free = sum(one.cores for one in workers if one.memory_mb >= wanted_mb)
    if free:
        return f"{counted(len(workers), 'worker')}, {counted(free, 'free core')} for executors"
    raise UnavailableError(
        f"none of {counted(len(workers), 'worker')} has a free core and "
        f"{settings.spark_executor_memory} of free memory",
        place=f"spark.master {settings.spark_master}",
        hint="a node that is up keeps its own; for another one lower spark.cores or "
        "spark.executor_memory, or start another worker.",
    )


def megabytes(memory: str) -> float:
    """Parse a memory setting to megabytes.

    >>> megabytes("2g")
    2048
    """
    return int(memory[:-1]) * _MB[memory[-1].lower()]


def _workers(master: str, own: str) -> tuple[WorkerResources, ...]:
    """The workers of the active master."""
    why = ""
    with _java() as java:
        for host, port in addresses(master):
            try:
                found = tuple(_asked(java, own, host, port))
            except Py4JError as error:
                why = reason(error)
                continue
            if found or len(addresses(master)) == 1:
                return found
    if why:
        raise UnavailableError(
            f"what answers there is no Spark master, or one of another version: {why}",
            place=f"spark.master {master}",
            hint="check the address; its port is that of the URL on the master's page.",
        )
    return ()


def _asked(java: Any, own: str, host: str, port: int) -> Iterator[WorkerResources]:
    spark = java.org.apache.spark
    conf = spark.SparkConf().set("spark.rpc.askTimeout", _ANSWERS_WITHIN)
    conf = conf.set("spark.rpc.lookupTimeout", _ANSWERS_WITHIN)
    secret_file = _module(spark.internal.config, "package$").AUTH_SECRET_FILE()
    security = spark.SecurityManager(conf, java.scala.Option.empty(), secret_file)
    rpc = spark.rpc.RpcEnv.create("medusa", own, 0, conf, security, True)
    try:
        ref = rpc.setupEndpointRef(spark.rpc.RpcAddress(host, port), "Master")
        request = _module(spark.deploy, "DeployMessages$RequestMasterState$")
        of_any = java.scala.reflect.ClassTag.apply(java.java.lang.Class.forName("java.lang.Object"))
        for worker in ref.askSync(request, of_any).workers():
            if worker.state().toString() == _ALIVE:
                yield WorkerResources(int(worker.coresFree()), int(worker.memoryFree()))
    finally:
        rpc.shutdown()


def _module(package: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(package, name), "MODULE$")


@contextmanager
def _java() -> Iterator[Any]:
    """PySpark's Java process, without a session."""
    gateway = launch_gateway()  # type: ignore[no-untyped-call] # PySpark has no types for it
    try:
        yield gateway.jvm
    finally:
        process = gateway.proc
        gateway.shutdown()
        process.stdin.close()
        process.wait(_ENDS_WITHIN_S)
