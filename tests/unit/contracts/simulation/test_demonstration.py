"""The demonstration: what it shows has happened."""

import random

from pipeline.contracts.decisions import What
from pipeline.contracts.simulation.demonstration import ALICE, BOB, CAROL, SCENES, demonstrate


def test_each_scene_has_the_consequence_that_it_is_for() -> None:
    """Whatever the latencies of messages; afterwards nobody is above the threshold."""
    for seed in range(3):
        chapters = demonstrate(random.Random(seed)).chapters
        assert [one.at_s for one in chapters] == [0, *(one.at_s for one in SCENES)]
        whats = [{(why.what, why.me, why.partner) for why in one.decisions} for one in chapters]
        assert whats[0] == set()
        assert (What.SENT, ALICE, BOB) in whats[1]
        assert {(What.RETURNED, BOB, ALICE), (What.SENT, ALICE, CAROL)} <= whats[2]
        assert {(What.RECALLED, ALICE, BOB), (What.RECALLED, ALICE, CAROL)} <= whats[3]
        assert (What.SENT, BOB, CAROL) in whats[4]
        assert {(What.LOST, BOB, CAROL), (What.SENT, BOB, ALICE)} <= whats[5]
        assert all(max(one.loads.values()) <= 100 for one in chapters)
