"""Pass: a box without readers writes to a topic too.

Otherwise its work would be useless, or silently omitted. It becomes an output with the default
topic name; a note reports it.
"""

from dataclasses import replace

from pipeline.names import derived_topic, stream_of_box
from pipeline.network.model import Output
from pipeline.planner.draft import Draft, outputs_of, readers_of


def name_outputs(draft: Draft) -> Draft:
    """Make every box without readers an output."""
    network = draft.network
    readers, outputs = readers_of(network), outputs_of(network)
    for box in network.boxes:
        stream = stream_of_box(box.name)
        if readers[stream] or stream in outputs:
            continue
        output = Output(stream, derived_topic(draft.network_id, box.name), network.partitions)
        draft = replace(
            draft,
            network=replace(draft.network, outputs=(*draft.network.outputs, output)),
        ).noting(f"{box.name} is read by no box: it is written to topic {output.topic}")
    for external in network.streams:
        if not readers[external.name]:
            draft = draft.noting(f"stream {external.name} is read by no box: it is left out")
    return draft
