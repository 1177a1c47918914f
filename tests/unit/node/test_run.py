import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.catalog.catalog import Catalog
from pipeline.errors import RefusedError
from pipeline.node.run import refuse_second
from pipeline.node.running import Folders
from pipeline.settings import combine
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import ME, NODE1, NODE2, node, session

_NOBODY = 2**22 + 1
"""Above every process number that Linux gives."""


def _with_node(pid: int, host: str) -> Catalog:
    _, catalog = session(MemoryTree())
    catalog.format.ensure(ME)
    catalog.nodes.register(replace(node(pid=pid), host=host))
    return catalog


def test_a_node_with_a_taken_name_is_refused_before_it_opens_anything() -> None:
    """Here or on another machine; another name is free."""
    here = _with_node(os.getpid(), socket.gethostname())
    with pytest.raises(RefusedError, match=f"node1 is up already: process {os.getpid()}"):
        refuse_second(ME, NODE1, here)
    refuse_second(ME, NODE2, here)
    with pytest.raises(RefusedError, match="on elsewhere"):
        refuse_second(ME, NODE1, _with_node(_NOBODY, "elsewhere"))


def test_an_ended_process_of_the_same_name_is_no_hindrance() -> None:
    """ZooKeeper keeps its session for some seconds; its process id shows that it has ended."""
    refuse_second(ME, NODE1, _with_node(_NOBODY, socket.gethostname()))


def test_the_warm_up_folder_is_writable_by_executors() -> None:
    """On this machine it is not in the folder of checkpoints."""
    written = {"data": "/data", "checkpoints": "/shared", "node": "one"}
    for master, where in (("local[2]", "/data/spark"), ("spark://one:7077", "/shared")):
        settings = combine((("flag", {**written, "spark.master": master}),))
        assert Folders.of(settings).warm_up(settings) == Path(where) / "local" / "warm-up-one"
