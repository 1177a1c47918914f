"""The checkpoint of a lane that runs on another node, as far as a follower reaches it."""

import logging
import shutil
import threading

from pipeline.errors import MedusaError
from pipeline.ids import BatchId
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
    if host.copies is None:
        return found
    names, spark = settings.fragment.names.stable, host.spark.version
    wanted = Wanted(names, settings.life, marker.incarnation, marker.epoch, spark)
    folder, store = checkpoints.folder(settings.epoch), host.copies.store
    try:
        fetched = fetch_at_once(store, wanted, found, folder, host.clock, stop)
    except MedusaError as error:
        _log.info("no copy of its checkpoint is used: %s", error, extra=_label(settings))
        return found
    if fetched is None:
        return found
    _, source = fetched
    found = checkpoints.link(settings.epoch, source)
    shutil.rmtree(source, ignore_errors=True)
    return found


def _label(settings: LaneSettings) -> dict[str, str]:
    return {"fragment": str(settings.lane.fragment)}
