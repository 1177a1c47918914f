import pytest

from pipeline.ids import SchemaId
from pipeline.spark.batch.unknown_schemas import SchemaCheck, UnknownSchemasError
from tests.unit.spark.write.sink_twins import AT, Batch, Schemas, facts

SEVEN, EIGHT, NINE = SchemaId(7), SchemaId(8), SchemaId(9)


def test_all_schemas_of_a_batch_are_looked_up_once_the_reported_ones_do_not_suffice() -> None:
    """In the second execution of the batch, or at once if the registry lacks the reported ones."""
    check = SchemaCheck(Schemas((EIGHT, NINE)))
    first, second = (Batch(facts(0, 5, unknown=(one,))) for one in (EIGHT, SEVEN))
    for batch, handles in ((first, (EIGHT,)), (first, (NINE,)), (second, (NINE,))):
        with pytest.raises(UnknownSchemasError) as caught:
            check.of_new(batch.facts, {AT: batch.facts.end[AT]}, batch)
        assert caught.value.handles == handles
    with pytest.raises(UnknownSchemasError) as caught:  # the next batch begins anew
        check.of_new(facts(1, 6, unknown=(EIGHT,)), first.facts.end, first)
    assert caught.value.handles == (EIGHT,)


def test_only_schemas_of_new_batches_are_recorded_as_missing() -> None:
    """A schema of a batch that was written may be back when the state is rebuilt."""
    there = Schemas(())
    check, batch = SchemaCheck(there), Batch(facts(0, 5, unknown=(SEVEN,)))
    check.of_written(batch.facts, batch.facts.end, batch)
    assert there.missing == []
    check.of_new(batch.facts, batch.facts.end, batch)
    assert there.missing == [SEVEN, NINE]


def test_a_batch_without_unknown_schemas_is_not_inspected() -> None:
    """Whatever the registry has."""
    check, batch = SchemaCheck(Schemas((NINE,))), Batch(facts(0, 5))
    check.of_new(batch.facts, {}, batch)
    check.of_written(batch.facts, {}, batch)
