"""Trial calls of a network's functions, before anything is deployed.

Each function is loaded in a child process and called with an empty batch. This checks that it can
be imported here, accepts a batch, and returns the declared columns. Its results for rows are not
checked before the network runs.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa

from pipeline.errors import Problem, RetryError
from pipeline.ids import BoxName
from pipeline.network.boxes.python import Python
from pipeline.network.model import Network
from pipeline.user_code.arrow import arrow_schema
from pipeline.user_code.caller import Caller, CallError, LoadError, StartError
from pipeline.user_code.function import Function

TRIAL_MIN_MS: Final = 10_000
"""Minimum timeout of the call: imports in a function's first call take as long as this machine is
busy, and no row waits here."""


def try_functions(network: Network, file: str, lines: Mapping[BoxName, int]) -> tuple[Problem, ...]:
    """Call the functions of a network's boxes and return the problems.

    Args:
        network: the valid network.
        file: its document.
        lines: the line of each box's function in the document.

    Raises:
        RetryError: a process did not start in time.
    """
    streams = network.by_name()
    found = []
    for box in network.boxes:
        if isinstance(box, Python):
            given = arrow_schema(streams[box.input].columns)
            problem = _try_function(box, given)
            if problem is not None:
                found.append(replace(problem, file=file, line=lines[box.name], box=box.name))
    return tuple(found)


def _try_function(box: Python, given: pa.Schema) -> Problem | None:
    empty = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in given], schema=given)
    within_ms = max(box.timeout_ms, TRIAL_MIN_MS)
    try:
        with Caller(Function(box.function, box.source, box.columns, within_ms)) as caller:
            caller.load()
            caller.call(empty)
    except LoadError as error:
        hint = (
            "a file travels alone, and modules are looked for where Medusa is installed: what it "
            "imports has to be installed there, on every node"
            if "ModuleNotFoundError" in str(error)
            else ""
        )
        message = f"{box.function} cannot be loaded: {error}"
        return Problem(message, hint=hint)
    except CallError as error:
        message = f"{box.function}, called with a batch without rows: {error}"
        hint = f"it has to return {', '.join(map(str, box.columns))}"
        return Problem(message, hint=hint)
    except StartError as error:
        raise RetryError(f"{box.function} could not be tried: {error}") from error
    return None
