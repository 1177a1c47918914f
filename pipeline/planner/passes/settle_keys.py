"""Pass: name the key columns of a box that keeps its input's key.

    per_segment = aggregate sightings by road, segment          key road, segment
    crowded     = filter per_segment where cars > 50            key as in the input

becomes

    crowded     = filter per_segment where cars > 50            key road, segment

A union gets the key if all its inputs have the same one; else each record keeps its key bytes.

So a record has the same key whether or not there is a topic between the two boxes. If a key column
is dropped, only the input's key bytes can pass, and those exist in a topic: `cut` puts one between.
The same applies to external streams, whose keys are bytes from the start.
"""

from pipeline.names import stream_of_box
from pipeline.network.model import Box
from pipeline.planner.boxes.catalogue import keeps_key, passes_on, with_key
from pipeline.planner.draft import Draft, key_columns


def settle_keys(draft: Draft) -> Draft:
    """Name the key columns of every box whose key is its input's, as far as they are kept."""
    streams = dict(draft.network.by_name())
    boxes: list[Box] = []
    for box in draft.network.boxes:
        settled = box
        if keeps_key(box):
            names = passes_on(box)
            keys = {key_columns(streams[stream]) for stream in box.inputs}
            key = keys.pop()
            if not keys and all(column in names for column in key):
                settled = with_key(box, tuple(names[column] for column in key))
        streams[stream_of_box(box.name)] = settled
        boxes.append(settled)
    return draft.with_boxes(tuple(boxes))
