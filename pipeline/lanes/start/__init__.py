"""Start of a lane, decided by the last marker and the checkpoint alone.

A batch goes through four steps: Spark plans it (its end offsets go into the checkpoint), executes
it, the sink commits its transaction (marker included), Spark commits it in the checkpoint. So with
the lane's own unmodified checkpoint the last marker describes the checkpoint's last committed
batch, or the one after it, which is then planned with exactly the marker's ends. (A stateless lane
lets Spark continue while its transaction is in progress; if that fails, the checkpoint is ahead.)

In every other case the marker is authoritative and the checkpoint is not used: the state is built
anew from the log, from the oldest positions that it needs up to the marker's, and nothing of that
is published. That is exact from any earlier state, an old copy or none at all.
"""
