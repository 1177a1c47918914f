from pipeline.spark.query.lowered import GroupCore, JoinCore, TopicRole
from pipeline.spark.warm_up.practice import fragments, lowered


def test_practice_has_every_shape_of_a_lane() -> None:
    """No state, windows, and pairs; each with the topics that most lanes are assigned."""
    found = [lowered(fragment) for fragment in fragments()]
    assert {type(one.core) for one in found} == {type(None), GroupCore, JoinCore}
    for one in found:
        roles = {topic.role for source in one.sources for topic in source.topics}
        assert roles == {TopicRole.DATA}
