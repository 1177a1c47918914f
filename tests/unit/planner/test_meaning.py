from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.network.model import Network
from pipeline.planner.boxes.catalogue import with_key
from pipeline.planner.draft import Draft
from pipeline.planner.passes.merge_aggregates import merge_aggregates
from pipeline.planner.passes.name_outputs import name_outputs
from pipeline.planner.passes.push_filters import push_filters
from pipeline.planner.passes.settle_keys import settle_keys
from pipeline.planner.planner import plan
from tests.profiles import examples
from tests.unit.planner.evaluate import run, same_rows
from tests.unit.planner.generated import networks, rows
from tests.unit.planner.networks import OWNER


def _rewritten(network: Network) -> Network:
    return push_filters(merge_aggregates(settle_keys(Draft(OWNER, network)))).network


@settings(max_examples=examples(300))
@given(st.data())
def test_rewriting_preserves_every_output(data: st.DataObject) -> None:
    """Merging and pushing down change no row of any stream that is written to a topic."""
    network = data.draw(networks())
    given_rows = data.draw(rows(network))
    before = run(network.boxes, given_rows)
    rewritten = _rewritten(network)
    after = run(rewritten.boxes, given_rows)
    for output in name_outputs(Draft(OWNER, network)).network.outputs:
        assert same_rows(before[output.stream], after[output.stream])


@settings(max_examples=examples(200))
@given(st.data())
def test_fragments_together_compute_the_network(data: st.DataObject) -> None:
    """Each fragment, run alone over the streams it reads, writes what the network says.

    As in a query, only the last box's key counts, and keys exist only in topics.
    """
    network = data.draw(networks())
    given_rows = data.draw(rows(network))
    expected = run(network.boxes, given_rows)
    topics = dict(given_rows)
    for fragment in plan(network, OWNER).fragments:
        readable = {str(stream.name): topics[stream.name] for stream in fragment.inputs}
        inside = [with_key(box, ()) for box in fragment.boxes[:-1]]
        topics[fragment.output.name] = run([*inside, fragment.boxes[-1]], readable)[
            fragment.output.name
        ]
    for output in name_outputs(Draft(OWNER, network)).network.outputs:
        assert same_rows(topics[output.stream], expected[output.stream])


@settings(max_examples=examples(100))
@given(networks())
def test_rewriting_is_idempotent(network: Network) -> None:
    """The passes leave no change for a second run, and always end."""
    once = _rewritten(network)
    assert _rewritten(once) == once
