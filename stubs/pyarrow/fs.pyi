from collections.abc import Sequence
from enum import Enum
from types import TracebackType
from typing import Self

class FileType(Enum):
    NotFound = 0
    Unknown = 1
    File = 2
    Directory = 3

class FileInfo:
    path: str
    type: FileType

class FileSelector:
    def __init__(
        self, base_dir: str, allow_not_found: bool = ..., recursive: bool = ...
    ) -> None: ...

class NativeFile:
    def read(self, nbytes: int | None = ..., /) -> bytes: ...
    def write(self, data: bytes, /) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

class AwsStandardS3RetryStrategy:
    def __init__(self, max_attempts: int = ...) -> None: ...

class S3FileSystem:
    def __init__(
        self,
        access_key: str | None = ...,
        *,
        secret_key: str | None = ...,
        region: str | None = ...,
        request_timeout: float | None = ...,
        connect_timeout: float | None = ...,
        scheme: str | None = ...,
        endpoint_override: str | None = ...,
        background_writes: bool = ...,
        allow_delayed_open: bool = ...,
        retry_strategy: AwsStandardS3RetryStrategy = ...,
    ) -> None: ...
    def open_input_stream(self, path: str) -> NativeFile: ...
    def open_output_stream(self, path: str) -> NativeFile: ...
    def get_file_info(self, selector: FileSelector) -> Sequence[FileInfo]: ...
    def copy_file(self, src: str, dest: str) -> None: ...
    def delete_file(self, path: str) -> None: ...
    def delete_dir(self, path: str) -> None: ...
