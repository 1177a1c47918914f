"""Pass: a box that keeps its input's key says which of its columns that is.

    per_segment = aggregate sightings by road, segment          key road, segment
    crowded     = filter per_segment where cars > 50            key as in the input

becomes

    crowded     = filter per_segment where cars > 50            key road, segment

A union says so where all its inputs have the same key; else each record keeps the key bytes it has.

So a record has the same key whether or not there is a topic between the two boxes. Where a column
of the key does not come through, only the input's key bytes can pass, and those exist in a topic:
`cut` puts one between. The same holds for external streams, whose keys are bytes from the start.
"""

from pipeline.names import stream_of_box
from pipeline.network.model import Box
from pipeline.planner.boxes.catalogue import keeps_key, passes_on, with_key
from pipeline.planner.draft import Draft, key_columns


def settle_keys(draft: Draft) -> Draft:
    """Name the key columns of every box whose key is its input's, as far as they come through."""
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
