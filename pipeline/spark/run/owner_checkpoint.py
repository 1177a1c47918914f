"""The checkpoint of a lane that runs on another node, as far as a follower reaches it."""

import logging
import shutil
import threading

from pipeline.errors import MedusaError
from pipeline.ids import BatchId, Epoch
from pipeline.markers.commit_marker import NO_BATCH, CommitMarker
from pipeline.spark.run.checkpoint_fetch import Wanted, fetch_at_once
from pipeline.spark.run.checkpoints import Checkpoints
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_settings import LaneSettings

_log = logging.getLogger(__name__)


def link_newest(
    marker: CommitMarker,
    settings: LaneSettings,
    host: LaneHost,
    checkpoints: Checkpoints,
    stop: threading.Event,
) -> BatchId:
    """Link the newest checkpoint of a lane into the folder of its follower.

    That is the lane's own, if both nodes mount one folder, or the copy in the checkpoint store.

    Args:
        marker: of the lane.
        settings: of the lane that would start here now.
        host: of this node.
        checkpoints: whose folder is the follower's.
        stop: ends waiting for the store.

    Returns:
        The last batch that Spark has committed in it; `NO_BATCH`: none is reached.
    """
    found = NO_BATCH
    own = checkpoints.newest_of(marker.incarnation)
    if own is not None:
        found = checkpoints.link(settings.epoch, own)
    wanted = Wanted.of(settings, marker, host.spark.version)
    try:
        copied = link_copy(wanted, settings.epoch, host, checkpoints, found, stop)
    except MedusaError as error:
        label = {"fragment": str(settings.lane.fragment)}
        _log.info("no copy of the checkpoint is used: %s", error, extra=label)
        return found
    return found if copied is None else copied


def link_copy(
    wanted: Wanted,
    epoch: Epoch,
    host: LaneHost,
    checkpoints: Checkpoints,
    here: BatchId,
    stop: threading.Event,
) -> BatchId | None:
    """Link the newest copy of a lane's checkpoint into the folder of an epoch, if it is of use.

    Args:
        wanted: which copies are of use.
        epoch: of the folder.
        host: of this node.
        checkpoints: of the folder.
        here: the last batch of the state that this node has; only a later one is of use.
        stop: ends waiting for the store.

    Returns:
        The last batch in it, `NO_BATCH` if the copy is damaged; None: no copy is of use, and the
        folder is as before.

    Raises:
        MedusaError: the store cannot be used; the folder is as before.
    """
    if host.copies is None:
        return None
    folder, store = checkpoints.folder(epoch), host.copies.store
    fetched = fetch_at_once(store, wanted, here, folder, host.clock, stop)
    if fetched is None:
        return None
    _, source = fetched
    linked = checkpoints.link(epoch, source)
    shutil.rmtree(source, ignore_errors=True)
    return linked
