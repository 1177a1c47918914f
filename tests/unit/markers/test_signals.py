from pipeline.markers.signals import activity_key, is_activity


def test_records_of_activity_differ_from_boundaries_by_their_key() -> None:
    """The key of a boundary is the writer's name alone; both are compacted separately."""
    assert is_activity(activity_key("local.net.sums"))
    assert not is_activity(b"local.net.sums")
    assert not is_activity(None)
