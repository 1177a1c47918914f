"""Opens the checkpoint store that the settings name."""

from pathlib import Path

from pipeline.checkpoint_store.folder_objects import FolderObjects
from pipeline.checkpoint_store.objects import Objects
from pipeline.checkpoint_store.store import CheckpointStore
from pipeline.settings import Settings

_S3 = "s3://"


def open_store(settings: Settings) -> CheckpointStore | None:
    """The checkpoint store; None: `store.url` is empty.

    Raises:
        InputError: a secret cannot be resolved.
    """
    url = settings.store_url
    return CheckpointStore(_objects(url, settings)) if url else None


def _objects(url: str, settings: Settings) -> Objects:
    if not url.startswith(_S3):
        return FolderObjects(Path(url).expanduser().absolute())
    # Imported here: its library starts threads, and few installations have a bucket.
    from pipeline.checkpoint_store.s3_objects import Bucket, S3Objects  # noqa: PLC0415

    return S3Objects(
        Bucket(
            path=url.removeprefix(_S3).strip("/"),
            endpoint=settings.store_endpoint,
            region=settings.store_region,
            access_key=settings.store_access_key,
            secret_key=settings.store_secret_key.resolve(),
        )
    )
