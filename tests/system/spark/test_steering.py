"""What the steering of queries needs of Spark."""

import pytest
from pyspark.sql import SparkSession

from pipeline.errors import EnvironmentProblem
from pipeline.spark.run import steered_query
from pipeline.spark.run.steered_query import check_steerable

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


def test_the_pinned_spark_can_be_steered(spark: SparkSession) -> None:
    """It has the field and the methods that are used."""
    check_steerable(spark)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("_FIELD", "ours", "has no field ours"),
        ("_METHODS", frozenset({"close"}), "the methods of .* are close, "),
        ("_READER", "org.apache.spark.Gone", "ClassNotFoundException"),
    ],
)
def test_a_spark_that_differs_is_refused_with_the_difference(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str, value: object, problem: str
) -> None:
    """A node ends at its start, before it claims a fragment."""
    monkeypatch.setattr(steered_query, name, value)
    with pytest.raises(EnvironmentProblem, match=problem) as caught:
        check_steerable(spark)
    assert spark.version in caught.value.message
    assert "version of PySpark" in caught.value.hint
