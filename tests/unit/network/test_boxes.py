"""Kinds of boxes: their results and errors."""

import pytest

from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.join import Join, TimeBound
from pipeline.network.boxes.map import Map
from pipeline.network.boxes.traits import traits
from pipeline.network.boxes.windows import SlidingWindow, TumblingWindow
from tests.unit.network.described import BoxOf, ErrorsOf, column_texts


def test_a_filter_keeps_columns_time_and_key(box_of: BoxOf) -> None:
    """Without a declared key, the key bytes of the input pass."""
    box = box_of("  b: {filter: s, where: speed > 0}\n")
    assert isinstance(box, Filter)
    assert len(box.columns) == 7
    assert (box.event_time_column, box.key, traits(box).stateful) == ("seen_at", (), False)
    assert box_of("  b: {filter: s, where: speed > 0, key: [CAR]}\n").key == ("car",)


def test_a_map_renames_its_event_time(box_of: BoxOf) -> None:
    """A column that only copies the event time is the event time."""
    box = box_of("  b: {map: s, select: {plate: car, fast: speed > 9, at: seen_at}}\n")
    assert isinstance(box, Map)
    assert column_texts(box) == [
        "plate STRING NOT NULL",
        "fast BOOLEAN NOT NULL",
        "at TIMESTAMP NOT NULL",
    ]
    assert box.event_time_column == "at"
    moved = box_of("  b: {map: s, select: {at: seen_at + INTERVAL 1 DAY}}\n")
    assert moved.event_time_column is None


def test_select_accepts_a_list_of_columns(box_of: BoxOf) -> None:
    """`[car, road]` is short for `{car: car, road: road}`."""
    assert column_texts(box_of("  b: {map: s, select: [car, road]}\n")) == [
        "car STRING NOT NULL",
        "road STRING NOT NULL",
    ]


def test_an_aggregate(box_of: BoxOf) -> None:
    """Columns of by, the window, columns of compute; equal calls are computed once."""
    box = box_of(
        "  b: {aggregate: s, window: 1m, by: {road: road, hour: hour(seen_at)},"
        " compute: {n: count(*), share: count(*) / sum(segment), last: max(seen_at)}}\n"
    )
    assert isinstance(box, Aggregate)
    assert column_texts(box) == [
        "road STRING NOT NULL",
        "hour INT NOT NULL",
        "window_start TIMESTAMP NOT NULL",
        "window_end TIMESTAMP NOT NULL",
        "n BIGINT NOT NULL",
        "share DOUBLE NOT NULL",
        "last TIMESTAMP NOT NULL",
    ]
    assert [column.millis for column in box.columns[2:]] == [True, True, False, False, True]
    assert (box.key, box.event_time_column) == (("road", "hour"), "window_end")
    assert traits(box).stateful
    assert [
        (a.name, a.function, a.argument and a.argument.sql, str(a.type)) for a in box.aggregations
    ] == [
        ("__agg0", "count", None, "BIGINT"),
        ("__agg1", "sum", "CAST(`segment` AS DECIMAL(20,0))", "BIGINT"),
        ("__agg2", "max", "`seen_at`", "TIMESTAMP"),
    ]
    assert [c.expression.sql for c in box.compute] == [
        "`__agg0`",
        "try_divide(CAST(`__agg0` AS DOUBLE), CAST(`__agg1` AS DOUBLE))",
        "`__agg2`",
    ]


@pytest.mark.parametrize(
    ("call", "function", "argument", "failed", "data_type"),
    [
        ("count(car)", "count", "`car`", None, "BIGINT"),
        ("count(DISTINCT car)", "count_distinct", "`car`", None, "BIGINT"),
        (
            "sum(speed)",
            "sum",
            "try_cast(`speed` AS DECIMAL(28,10))",
            "(try_cast(`speed` AS DECIMAL(28,10)) IS NULL)",
            "DOUBLE",
        ),
        (
            "mean(speed)",
            "avg",
            "try_cast(`speed` AS DECIMAL(28,10))",
            "(try_cast(`speed` AS DECIMAL(28,10)) IS NULL)",
            "DOUBLE",
        ),
        ("avg(segment)", "avg", "CAST(`segment` AS DECIMAL(20,0))", None, "DOUBLE"),
        (
            "sum(CAST(segment AS DECIMAL(12,2)))",
            "sum",
            "CAST(`segment` AS DECIMAL(12,2))",
            None,
            "DECIMAL(22,2)",
        ),
        ("min(road)", "min", "`road`", None, "STRING"),
        (
            "count_if(speed > 9)",
            "count",
            "(CASE WHEN (`speed` > CAST(9 AS DOUBLE)) THEN 1 ELSE CAST(NULL AS INT) END)",
            None,
            "BIGINT",
        ),
        (
            "max(segment) FILTER (WHERE speed > 9)",
            "max",
            "(CASE WHEN (`speed` > CAST(9 AS DOUBLE)) THEN `segment` ELSE CAST(NULL AS INT) END)",
            None,
            "INT",
        ),
        (
            "count(*) FILTER (WHERE speed > 9)",
            "count",
            "(CASE WHEN (`speed` > CAST(9 AS DOUBLE)) THEN 1 ELSE CAST(NULL AS INT) END)",
            None,
            "BIGINT",
        ),
    ],
)
def test_aggregate_functions(
    call: str, function: str, argument: str, failed: str | None, data_type: str, box_of: BoxOf
) -> None:
    """Added values are exact, so that no order of rows changes a sum; only a row fails."""
    box = box_of(f'  b: {{aggregate: s, window: 1m, compute: {{x: "{call}"}}}}\n')
    assert isinstance(box, Aggregate)
    (found,) = box.aggregations
    assert found.argument is not None
    assert (found.function, found.argument.sql, found.argument.failed, str(found.type)) == (
        function,
        argument,
        failed,
        data_type,
    )


def test_without_by_all_rows_are_one_group(box_of: BoxOf) -> None:
    """The key is then the window's end."""
    box = box_of("  b: {aggregate: s, window: {size: 1m, offset: 15s}, compute: {n: count(*)}}\n")
    assert isinstance(box, Aggregate)
    assert (box.by, box.key) == ((), ("window_end",))
    assert box.window == TumblingWindow(60_000, 15_000)


def test_overlapping_windows_have_a_slide(box_of: BoxOf) -> None:
    """One that is as long as the window changes nothing; `window` is the document's."""
    box = box_of(
        "  b: {aggregate: s, window: {size: 1m, slide: 10s, offset: 5s}, compute: {n: count(*)}}\n"
    )
    assert isinstance(box, Aggregate)
    assert box.window == SlidingWindow(60_000, 5_000, 10_000)
    box = box_of("  b: {aggregate: s, window: {size: 1m, slide: 1m}, compute: {n: count(*)}}\n")
    assert isinstance(box, Aggregate)
    assert box.window == TumblingWindow(60_000, 0)


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("{size: 1m, slide: 2m}", "the slide of a window is longer than the window"),
        ("{size: 1m, slide: 10s, offset: 10s}", "must be shorter than its slide"),
        ("{size: 1m, offset: 1m}", "must be shorter than the window"),
        ("{size: 1d, slide: 1s}", "every record would count in 86,400 windows"),
        ("{size: 1m, slide: 0s}", "must be at least 1ms"),
        ("{slide: 1m}", "size"),
    ],
)
def test_invalid_windows_are_refused(window: str, message: str, errors_of: ErrorsOf) -> None:
    """With the alternatives."""
    reported = errors_of(f"  b: {{aggregate: s, window: {window}, compute: {{n: count(*)}}}}\n")
    assert message in "\n".join(reported)


def test_a_join_without_select_has_all_columns_once(box_of: BoxOf) -> None:
    """Those of the left side, then those of the right one that are not in `on`."""
    box = box_of(
        "  a: {map: s, select: {car: car, a_at: seen_at}}\n"
        "  b: {map: s, select: {plate: car, b_at: seen_at}}\n"
        "  j: {join: {left: a, right: b, on: {car: plate}, within: {before: 1m}}}\n"
    )
    assert isinstance(box, Join)
    assert [c.name for c in box.columns] == ["car", "a_at", "b_at"]
    assert box.on == (("car", "plate"),)
    assert (box.bound, box.event_time_column) == (TimeBound(-60_000, 0), "b_at")
    assert (box.key, box.inputs) == (("car",), ("a", "b"))


@pytest.mark.parametrize(
    ("within", "bound"),
    [
        ("5m", (-300_000, 300_000)),
        ("0s", (0, 0)),
        ("{after: 5m}", (0, 300_000)),
        ("{before: 1s, after: 0s}", (-1_000, 0)),
        ("left.seen_at BETWEEN right.seen_at AND right.seen_at + INTERVAL 1 MINUTE", (0, 60_000)),
        ("right.seen_at BETWEEN left.seen_at - INTERVAL 2 SECONDS AND left.seen_at", (0, 2_000)),
        (
            "left.seen_at >= right.seen_at AND left.seen_at < right.seen_at + INTERVAL 1 SECOND",
            (0, 999),
        ),
        (
            "left.seen_at + INTERVAL 1 SECOND > right.seen_at AND (left.seen_at <= right.seen_at)",
            (-999, 0),
        ),
        ("left.seen_at = right.seen_at + INTERVAL 1 MINUTE", (60_000, 60_000)),
        (
            "left.seen_at BETWEEN right.seen_at AND right.seen_at + INTERVAL 36500 DAYS",
            (0, 36_500 * 86_400_000),
        ),
        (
            (
                "LEFT.SEEN_AT BETWEEN right.seen_at - (INTERVAL 1 SECOND + "
                "INTERVAL 1 HOUR) AND INTERVAL 1 DAY + right.seen_at"
            ),
            (-3_601_000, 86_400_000),
        ),
    ],
)
def test_within(within: str, bound: tuple[int, int], box_of: BoxOf) -> None:
    """All notations of the maximum distance of a pair."""
    box = box_of(
        f"  j:\n    join: {{left: s, right: s, on: [car], within: {within}}}\n    select: [car]\n"
        if "left" not in within.lower()
        else "  j:\n    join:\n      left: s\n      right: s\n      on: [car]\n"
        f"      within: {within}\n    select: [car]\n"
    )
    assert isinstance(box, Join)
    assert (box.bound.lower_ms, box.bound.upper_ms) == bound


@pytest.mark.parametrize(
    ("within", "message"),
    [
        (
            "left.seen_at > right.seen_at",
            "within has no upper limit, so rows would have to be kept for ever",
        ),
        ("left.speed > right.seen_at", "within names left.speed, which is not the event time of s"),
        ("seen_at > right.seen_at", "within names seen_at without its side"),
        ("left.seen_at > left.seen_at", "within compares a side with itself"),
        (
            "left.seen_at - right.seen_at < 5",
            "within compares something that is no event time",
        ),
        ("left.seen_at > 5", "within compares something that is no event time"),
        ("left.seen_at OR 1", "within is not a comparison of the two event times"),
        (
            "left.seen_at >= right.seen_at + INTERVAL 1 SECOND AND left.seen_at <= right.seen_at",
            "no two event times can satisfy within",
        ),
        (
            "left.seen_at BETWEEN right.seen_at AND right.seen_at + INTERVAL 36501 DAYS",
            "within lets event times lie further apart than 36500d",
        ),
        (
            "right.seen_at BETWEEN left.seen_at AND left.seen_at + INTERVAL 876001 HOURS",
            "within lets event times lie further apart than 36500d",
        ),
        (
            "left.seen_at = right.seen_at - INTERVAL 40000 DAYS",
            "within lets event times lie further apart than 36500d",
        ),
        (
            "left.seen_at = right.seen_at + INTERVAL 1 MICROSECOND",
            "within reckons in whole milliseconds",
        ),
        (
            "soon",
            (
                "within of join of box j: 'soon' is not a duration: "
                "write a whole number and ms, s, m, h or d"
            ),
        ),
        ("{}", "within of join of box j says neither before nor after"),
        ("{before: 1s, aftr: 2s}", "within of join of box j has no key aftr"),
        ("window", "within of join of box j says window, but the document has none at its top"),
        ("left.seen_at >", "the expression does not parse at character 14, '>'"),
    ],
)
def test_wrong_within(within: str, message: str, errors_of: ErrorsOf) -> None:
    """Only a bound on both sides between the two event times is one."""
    (found,) = errors_of(
        "  j:\n    join:\n      left: s\n      right: s\n      on: [car]\n"
        f"      within: {within}\n    select: [left.car]\n"
    )
    assert found.split("\n")[0].split(" (there is")[0] == message


def test_equal_event_times_need_no_within(box_of: BoxOf) -> None:
    """The ends of two equal windows, for example."""
    box = box_of("  j: {join: {left: s, right: s, on: [car, seen_at]}, select: [seen_at]}\n")
    assert isinstance(box, Join)
    assert (box.bound, box.event_time_column) == (TimeBound(0, 0), "seen_at")
    assert box.key == ("seen_at",)


def test_the_side_of_the_later_event_time_follows_only_from_the_bound(box_of: BoxOf) -> None:
    """With five minutes in both directions it may be either."""
    join = "  j: {join: {left: s, right: s, on: [car], within: %s}, select: {x: left.seen_at}}\n"
    assert box_of(join % "5m").event_time_column is None
    assert box_of(join % "{after: 5m}").event_time_column == "x"
    assert box_of(join % "{before: 5m}").event_time_column is None
    assert box_of(join % "5m").key == ()


def test_whole_numbers_of_both_sizes_can_be_joined(box_of: BoxOf) -> None:
    """INT with BIGINT; no other different types."""
    box = box_of(
        "  j: {join: {left: s, right: o, on: [segment], within: 1m}, select: [car]}\n".replace(
            "[car]", "[left.car]"
        )
    )
    assert isinstance(box, Join)
    assert box.on == (("segment", "segment"),)


@pytest.mark.parametrize(
    ("lines", "problems"),
    [
        ("  b: {filter: s, where: speed}\n", ["needs a condition, but this is DOUBLE"]),
        ("  b: {filter: s}\n", ["box b needs where"]),
        (
            "  b: {filter: [s], where: speed > 0}\n",
            ["filter of box b must be one value, not a list"],
        ),
        (
            "  b: {filter: o, where: segment > 0}\n",
            [
                (
                    "column mixed of o cannot be passed on: it holds a union of INT and STRING\n"
                    "    hint: put a map box in between that selects the columns of o you need"
                )
            ],
        ),
        (
            "  b: {map: o, select: [mixed]}\n",
            ["column mixed cannot be used: it holds a union of INT and STRING"],
        ),
        ("  b: {map: s, select: {}}\n", ["select of box b names no column"]),
        ("  b: {map: s}\n", ["box b needs select"]),
        (
            "  b: {map: s, select: car}\n",
            ["select of box b must be a list or a mapping of columns"],
        ),
        (
            "  b: {map: s, select: {a-b: car, __x: car, c: car, C: car}}\n",
            [
                (
                    "'a-b' is no name for a column\n    hint: letters, "
                    "digits and _, not beginning with a digit"
                ),
                "__x begins with __, which Medusa keeps for itself",
                "select has C twice",
            ],
        ),
        (
            "  b: {map: s, select: [speed * 2]}\n",
            [
                (
                    "'speed * 2' is no name for a column\n    hint: to "
                    "compute something write {name: expression}"
                )
            ],
        ),
        ("  b: {map: s, select: [car], key: []}\n", ["key is empty\n    hint: leave it out"]),
        (
            "  b: {map: s, select: [car], key: car}\n",
            ["key of box b must be a list\n    hint: write [car]"],
        ),
        ("  b: {map: s, select: [car], key: [car, CAR]}\n", ["key has CAR twice"]),
        (
            "  b: {map: o, select: [tags], key: [tags]}\n",
            ["tags cannot be part of a key: it is MAP<STRING, STRING>"],
        ),
        (
            "  b: {aggregate: s, compute: {n: count(*)}}\n",
            [
                (
                    "box b needs window\n    hint: write window: 1m here, "
                    "or once at the top of the document"
                )
            ],
        ),
        (
            "  b: {aggregate: s, window: 0s, compute: {n: count(*)}}\n",
            ["window of box b must be at least 1ms"],
        ),
        (
            "  b: {aggregate: s, window: {size: 1m, slide: soon}, compute: {n: count(*)}}\n",
            [
                (
                    "slide of window of box b: 'soon' is not a duration: "
                    "write a whole number and ms, s, m, h or d"
                )
            ],
        ),
        (
            "  b: {aggregate: s, window: {size: 1m, slde: 10s}, compute: {n: count(*)}}\n",
            ["window of box b has no key slde (there is: slide, size, offset)"],
        ),
        (
            "  b: {aggregate: s, window: {size: 1m, offset: 1m}, compute: {n: count(*)}}\n",
            ["the offset of a window must be shorter than the window"],
        ),
        ("  b: {aggregate: s, window: 1m}\n", ["box b needs compute"]),
        (
            "  b: {aggregate: o, window: 1m, by: [tags], compute: {n: count(*)}}\n",
            ["tags is MAP<STRING, STRING>, and rows cannot be grouped by that"],
        ),
        (
            (
                "  b: {aggregate: s, window: 1m, by: [car], compute: "
                "{car: count(*), window_end: count(*)}}\n"
            ),
            [
                (
                    "two columns of the output are called car\n    hint: the output has the "
                    "columns of by, window_start, window_end, those of compute"
                ),
                (
                    "two columns of the output are called window_end\n    hint: the output has "
                    "the columns of by, window_start, window_end, those of compute"
                ),
            ],
        ),
        (
            "  b: {aggregate: s, window: 1m, compute: {n: sum(max(speed))}}\n",
            ["max stands inside another aggregate function\n    hint: aggregate in two boxes"],
        ),
        (
            "  b: {aggregate: s, window: 1m, compute: {n: sum(car)}}\n",
            ["sum needs numbers, not STRING"],
        ),
        (
            "  b: {aggregate: s, window: 1m, compute: {n: sum(DISTINCT speed)}}\n",
            ["sum(DISTINCT …) is not supported\n    hint: count(DISTINCT x) takes one value"],
        ),
        (
            "  b: {aggregate: s, window: 1m, compute: {n: count()}}\n",
            ["count takes 1 argument, not 0\n    hint: count(*), count(x), count(DISTINCT x)"],
        ),
        (
            "  j: {join: {left: s, right: s, on: [car], within: 5m}}\n",
            [
                (
                    "both sides have kind, road, segment, speed, location, seen_at\n    "
                    "hint: say what you want: select: {kind: left.kind, …}"
                )
            ],
        ),
        (
            "  j: {join: {left: s, right: s, within: 5m}, select: [left.car]}\n",
            ["join of box j needs on"],
        ),
        (
            "  j: {join: {left: s, right: s, on: [], within: 5m}, select: [left.car]}\n",
            ["on of join of box j names no column"],
        ),
        (
            "  j: {join: {left: s, right: s, on: [cra], within: 5m}, select: [left.car]}\n",
            [
                (
                    "on names cra, which is no column of s (there is: car, kind, "
                    "road, segment, speed, location, seen_at)"
                )
            ],
        ),
        (
            (
                "  j: {join: {left: s, right: o, on: {car: segment}, "
                "within: 5m}, select: [left.car]}\n"
            ),
            [
                (
                    "on compares s.car, STRING, with o.segment, BIGINT\n    "
                    "hint: CAST one of them in a map box"
                )
            ],
        ),
        ("  j: {join: s, select: [car]}\n", ["join of box j must be a mapping"]),
        (
            "  j: {join: {left: s, rigth: s, on: [car], within: 5m}, select: [left.car]}\n",
            [
                "join of box j needs right",
                "join of box j has no key rigth (there is: right, left, on, how, within)",
            ],
        ),
    ],
)
def test_errors_in_a_box(lines: str, problems: list[str], errors_of: ErrorsOf) -> None:
    """One message for each kind of error, and no further ones."""
    assert errors_of(lines) == problems
