# The parts of pandas that we use.

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

class Series:
    def __iter__(self) -> Iterator[Any]: ...

class DataFrame:
    def __init__(self, data: Mapping[str, Sequence[object]]) -> None: ...
    def __getitem__(self, name: str) -> Series: ...
