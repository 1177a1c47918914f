"""How a lane starts: from what the last marker and the checkpoint say, and nothing else.

A batch goes through four steps: Spark plans it (its end offsets go into the checkpoint), executes
it, the sink commits its transaction (marker included), Spark commits it in the checkpoint. So with
the lane's own untouched checkpoint the last marker is about the checkpoint's last committed batch,
or about the one after it, which is then planned with exactly the marker's ends. (A stateless lane
lets Spark go on while its transaction is on the way; if that fails, the checkpoint is ahead.)

In every other case the marker is the truth and the checkpoint is not used: the state is built anew
from the log, from the oldest positions that it needs up to the marker's, and nothing of that is
published. That is exact from any earlier state, an old copy or none at all.
"""
