"""`within` of a join: the bound on the difference of a pair's event times."""

from dataclasses import dataclass

from sqlglot import exp

from pipeline.network import literals, parsing
from pipeline.network.boxes.common import Defaults, StreamFacts, window_size
from pipeline.network.fields import Fields, Text
from pipeline.network.scope import SIDES
from pipeline.network.term import FaultError
from pipeline.network.types import Scalar
from pipeline.yaml_reader import YamlMap, YamlScalar

_MICROS_PER_MILLI = 1_000

_HOW = (
    "write within: 5m, within: {before: 1m, after: 5m}, or"
    " left.time BETWEEN right.time - INTERVAL 1 MINUTE AND right.time + INTERVAL 5 MINUTES"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """`lower <= left event time - right event time <= upper`, in ms; None: no limit."""

    lower: int | None
    upper: int | None

    def both(self, other: "Limits") -> "Limits":
        """The intersection of both."""
        lows = [x for x in (self.lower, other.lower) if x is not None]
        highs = [x for x in (self.upper, other.upper) if x is not None]
        return Limits(max(lows, default=None), min(highs, default=None))


def read_within(fields: Fields, defaults: Defaults) -> Limits | Text | None:
    """`within` as written: limits, or the text of an expression; None: missing or reported."""
    node = fields.node("within")
    if isinstance(node, YamlScalar):
        text = Text(node.text, node.line)
        if not _is_duration(node.text):
            return text
        size = window_size(fields, "within", text, defaults, low=0)
        return None if size is None else Limits(-size, size)
    if isinstance(node, YamlMap):
        inner = Fields(node, f"within of {fields.what}", fields.report, fields.box)
        if not node.entries:
            inner.problem(f"{inner.what} says neither before nor after", node.line, hint=_HOW)
            return None
        before, after = (_side(inner, key, defaults) for key in ("before", "after"))
        inner.finish()
        if before is None or after is None:
            return None
        return Limits(-before, after)
    if node is not None:
        fields.problem(f"within of {fields.what} must be a duration", node.line, hint=_HOW)
    return None


def _is_duration(text: str) -> bool:
    """Whether the text is a duration rather than a comparison of two times."""
    return not any(mark in text for mark in ("<", ">", ".", "=", "(")) and len(text.split()) == 1


def _side(fields: Fields, key: str, defaults: Defaults) -> int | None:
    if not fields.has(key):
        fields.known.append(key)
        return 0
    return window_size(fields, key, fields.text(key), defaults, low=0)


def limits_of(text: str, left: StreamFacts, right: StreamFacts) -> Limits:
    """The limits expressed by a `within` expression.

    Raises:
        FaultError: it is not a time bound.
    """
    return _Reader(left, right).limits(parsing.parse(text))


class _Reader:
    """Parser of comparisons `left.time OP right.time ± INTERVAL`, joined with AND."""

    def __init__(self, left: StreamFacts, right: StreamFacts) -> None:
        self.facts = {"left": left, "right": right}

    def limits(self, node: exp.Expr) -> Limits:
        """The limits of a condition."""
        if isinstance(node, exp.Paren):
            return self.limits(node.this)
        if isinstance(node, exp.And):
            return self.limits(node.this).both(self.limits(node.expression))
        if isinstance(node, exp.Between):
            low, high = node.args["low"], node.args["high"]
            return self._compared(node.this, low, strict=False).both(
                self._compared(high, node.this, strict=False)
            )
        if isinstance(node, exp.GTE | exp.GT):
            return self._compared(node.this, node.expression, strict=isinstance(node, exp.GT))
        if isinstance(node, exp.LTE | exp.LT):
            return self._compared(node.expression, node.this, strict=isinstance(node, exp.LT))
        if isinstance(node, exp.EQ):
            return self._compared(node.this, node.expression, strict=False).both(
                self._compared(node.expression, node.this, strict=False)
            )
        raise FaultError("within is not a comparison of the two event times", hint=_HOW)

    def _compared(self, greater: exp.Expr, smaller: exp.Expr, *, strict: bool) -> Limits:
        """`greater >= smaller`, or `>`; strict means one millisecond more."""
        high_side, high_shift = self._moved(greater)
        low_side, low_shift = self._moved(smaller)
        if high_side == low_side:
            raise FaultError("within compares a side with itself", hint=_HOW)
        # greater + a >= smaller + b  <=>  greater - smaller >= b - a
        least = low_shift - high_shift + (1 if strict else 0)
        if high_side == "left":
            return Limits(least, None)
        return Limits(None, -least)

    def _moved(self, node: exp.Expr) -> tuple[str, int]:
        """A side whose event time is used, and the added milliseconds."""
        if isinstance(node, exp.Paren):
            return self._moved(node.this)
        if isinstance(node, exp.Add | exp.Sub):
            if isinstance(node, exp.Add) and self._is_interval(node.this):
                side, shift = self._moved(node.expression)
                return side, shift + self._interval(node.this)
            side, shift = self._moved(node.this)
            moved = self._interval(node.expression)
            return side, shift + (moved if isinstance(node, exp.Add) else -moved)
        if isinstance(node, exp.Column):
            return self._side(node), 0
        raise FaultError("within compares something that is no event time", hint=_HOW)

    def _side(self, node: exp.Column) -> str:
        side, name = node.table.lower(), node.name
        if side not in SIDES or node.args.get("db") is not None:
            raise FaultError(
                f"within names {name} without its side", choices=(f"left.{name}", f"right.{name}")
            )
        facts = self.facts[side]
        if facts.event_time_column is None:
            raise FaultError(
                f"within names {side}.{name}, but {facts.name} has no column for its event time",
                hint="write within: 5m, which goes by the event times themselves",
            )
        if name.lower() != facts.event_time_column.lower():
            raise FaultError(
                f"within names {side}.{name}, which is not the event time of {facts.name}",
                choices=(f"{side}.{facts.event_time_column}",),
            )
        return side

    def _is_interval(self, node: exp.Expr) -> bool:
        return any(isinstance(part, exp.Interval) for part in node.walk()) and not any(
            isinstance(part, exp.Column) for part in node.walk()
        )

    def _interval(self, node: exp.Expr) -> int:
        if isinstance(node, exp.Paren):
            return self._interval(node.this)
        if isinstance(node, exp.Add | exp.Sub):
            moved = self._interval(node.expression)
            return self._interval(node.this) + (moved if isinstance(node, exp.Add) else -moved)
        if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal):
            raise FaultError("within moves a time by something that is no INTERVAL", hint=_HOW)
        unit = node.args.get("unit")
        term = literals.interval(node.this.name, unit.name if isinstance(unit, exp.Var) else "")
        micros = term.constant
        if term.type is not Scalar.INTERVAL or not isinstance(micros, int):
            raise FaultError("within moves a time by something that is no INTERVAL", hint=_HOW)
        if micros % _MICROS_PER_MILLI:
            raise FaultError("within reckons in whole milliseconds")
        return micros // _MICROS_PER_MILLI
