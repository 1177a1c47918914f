import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli.node_lock import only_node
from pipeline.errors import EnvironmentProblem, RefusedError

Caller = Callable[..., Any]


def test_a_second_process_of_a_node_is_refused_with_the_id_of_the_first(tmp_path: Path) -> None:
    """Also after earlier holders; a node with another name may use the folder."""
    data = tmp_path / "data"
    with only_node(data, "n1"):
        pass
    refused = pytest.raises(RefusedError, match=f"node n1 runs here already: process {os.getpid()}")
    with only_node(data, "n1"), only_node(data, "n2"), refused, only_node(data, "n1"):
        pass
    with only_node(data, "n1"):
        pass


def test_a_second_node_start_does_not_write_into_the_log(medusa: Caller) -> None:
    """The second start ends at once with 65; no log is opened."""
    with only_node(Path(".medusa").absolute(), "n7"):
        called = medusa("node", "start", "--name", "n7", "-o", "json")
    assert called.code == 65
    assert "n7 runs here already" in called.data["error"]["message"]
    assert not Path(".medusa/logs").exists()


def test_the_error_names_a_file_that_prevents_the_data_folder(tmp_path: Path) -> None:
    """It may be any of the folder's parents."""
    (tmp_path / "file").touch()
    refused = pytest.raises(EnvironmentProblem, match=f"{tmp_path}/file is a file")
    with refused, only_node(tmp_path / "file" / "deep" / "er", "n"):
        pass
