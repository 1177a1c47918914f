"""Objects in a bucket of an S3-compatible store. The only module that imports `pyarrow.fs`.

A PUT is visible as a whole once it has succeeded. Nothing is renamed, and nothing that decides is
read from a list.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyarrow import fs

from pipeline.errors import UnavailableError
from pipeline.secrets import Secret

CONNECT_S: Final = 5.0
REQUEST_S: Final = 20.0
TRIES: Final = 3
CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Bucket:
    """How a bucket is reached.

    Args:
        path: the bucket and the prefix of all keys, without slashes at the ends.
        endpoint: the scheme, `http` or `https`, with `HOST:PORT`; empty: that of AWS.
        region: of the bucket; empty: as the environment says.
        access_key: id of the key; empty: credentials as the environment says.
        secret_key: that belongs to it.
    """

    path: str
    endpoint: str
    region: str
    access_key: str
    secret_key: Secret


class S3Objects:
    """Implements `Objects` in a bucket."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        scheme, _, host = bucket.endpoint.rpartition("://")
        self._fs = fs.S3FileSystem(
            access_key=bucket.access_key or None,
            secret_key=bucket.secret_key.reveal() if bucket.access_key else None,
            region=bucket.region or None,
            scheme=scheme or "https",
            endpoint_override=host or None,
            connect_timeout=CONNECT_S,
            request_timeout=REQUEST_S,
            background_writes=False,
            allow_delayed_open=True,  # a small object takes one request
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=TRIES),
        )

    @property
    def place(self) -> str:
        """See `Objects`."""
        return f"s3://{self._bucket.path}"

    def read(self, key: str) -> bytes | None:
        """See `Objects`."""
        with self._using(key):
            try:
                with self._fs.open_input_stream(self._path(key)) as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                return None

    def write(self, key: str, content: bytes) -> None:
        """See `Objects`."""
        with self._using(key), self._fs.open_output_stream(self._path(key)) as stream:
            stream.write(content)

    def send(self, key: str, source: Path) -> None:
        """See `Objects`."""
        with (
            self._using(key),
            source.open("rb") as content,
            self._fs.open_output_stream(self._path(key)) as stream,
        ):
            shutil.copyfileobj(content, stream, CHUNK_BYTES)

    def copy(self, key: str, to: str) -> bool:
        """See `Objects`; the bucket copies it itself."""
        try:
            self._fs.copy_file(self._path(key), self._path(to))
        except OSError:  # none, or too large for one request
            return False
        return True

    def fetch(self, key: str, target: Path) -> bool:
        """See `Objects`."""
        with self._using(key):
            try:
                stream = self._fs.open_input_stream(self._path(key))
            except FileNotFoundError:
                return False
            with stream, target.open("xb") as content:
                shutil.copyfileobj(stream, content, CHUNK_BYTES)
            return True

    def keys(self, prefix: str) -> tuple[str, ...]:
        """See `Objects`."""
        folder = self._path(prefix.rstrip("/"))
        with self._using(prefix):
            selector = fs.FileSelector(folder, allow_not_found=True, recursive=True)
            found = self._fs.get_file_info(selector)
        start = len(self._bucket.path) + 1
        files = (one.path[start:] for one in found if one.type is fs.FileType.File)
        return tuple(sorted(files))

    def remove(self, keys: tuple[str, ...]) -> None:
        """See `Objects`."""
        for key in keys:
            with self._using(key):
                try:
                    self._fs.delete_file(self._path(key))
                except FileNotFoundError:
                    continue

    def remove_folder(self, folder: str) -> None:
        """See `Objects`."""
        with self._using(folder), suppress(FileNotFoundError):
            self._fs.delete_dir(self._path(folder))

    def _path(self, key: str) -> str:
        return f"{self._bucket.path}/{key}"

    @contextmanager
    def _using(self, key: str) -> Iterator[None]:
        """Translate the errors of the driver."""
        try:
            yield
        except (OSError, ValueError) as error:  # the driver's own are of both kinds
            raise UnavailableError(
                f"the checkpoint store does not answer: {_first_line(error)}",
                place=f"s3://{self._path(key)}",
                hint="see that store.endpoint is reached, that the bucket exists, and that "
                "store.access_key may read and write it; lanes run on meanwhile",
            ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
