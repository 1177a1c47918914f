"""Functions of numbers, and hashes."""

from collections.abc import Sequence

from pipeline.network import safe
from pipeline.network.coercion import MAX_PRECISION, is_integral
from pipeline.network.function_rules import (
    Function,
    Rule,
    checked,
    double,
    literal_int,
    number,
    octets,
    plain,
    simple,
)
from pipeline.network.logic import all_millis, unify
from pipeline.network.term import FaultError, Term
from pipeline.network.types import DecimalType, Scalar

_SCALE_MAX = 30
_HASH_BITS = (0, 224, 256, 384, 512)


def _absolute(args: Sequence[Term]) -> Term:
    (value,) = checked(args, [number])
    negated = safe.negate(value).sql
    sql = f"(CASE WHEN {value.sql} < 0 THEN {negated} ELSE {value.sql} END)"
    if is_integral(value.type):
        return safe.attempt(sql, value.type, [value])
    exact = not safe.is_rounded(value.type)
    return safe.strict(f"abs({value.sql})" if exact else sql, value.type, [value])


def _whole(name: str) -> Rule:
    def rule(args: Sequence[Term]) -> Term:
        (value,) = checked(args, [number])
        if isinstance(value.type, DecimalType):
            digits = value.type.precision - value.type.scale + 1
            result = DecimalType(min(digits, MAX_PRECISION), 0)
            if value.type.scale == 0:
                result = value.type if digits > MAX_PRECISION else result
            return safe.strict(f"{name}({value.sql})", result, [value])
        return safe.strict(f"{name}({value.sql})", Scalar.LONG, [value])

    return rule


def _round(args: Sequence[Term]) -> Term:
    checked(args, [number, number], optional=1)
    (value,) = checked(args[:1], [number])
    scale = literal_int(args[1], "argument 2", 0, _SCALE_MAX) if len(args) > 1 else 0
    if not isinstance(value.type, DecimalType):
        return safe.strict(f"round({value.sql}, {scale})", value.type, [value])
    kept = min(scale, value.type.scale)
    digits = value.type.precision - value.type.scale + 1 + kept
    if digits > MAX_PRECISION:
        raise FaultError(
            f"the rounded {value.type} may need more than {MAX_PRECISION} digits",
            hint="CAST it to a smaller DECIMAL first",
        )
    return safe.strict(f"round({value.sql}, {scale})", DecimalType(digits, kept), [value])


def _extreme(name: str) -> Rule:
    def rule(args: Sequence[Term]) -> Term:
        if len(args) < 2:  # noqa: PLR2004 - one value has no greatest
            raise FaultError(f"takes 2 arguments or more, not {len(args)}")
        values = unify([simple(arg) for arg in args])
        made = safe.strict(
            f"{name}({', '.join(v.sql for v in values)})",
            values[0].type,
            values,
            nullable=all(v.nullable for v in values),
        )
        return _with_millis(made, args)

    return rule


def _with_millis(term: Term, args: Sequence[Term]) -> Term:
    return Term(
        term.sql, term.type, term.nullable, term.failed, term.columns, millis=all_millis(args)
    )


def _operator(symbol: str, *, swallow: bool) -> Rule:
    def rule(args: Sequence[Term]) -> Term:
        left, right = checked(args, [number, number])
        made = safe.arithmetic(symbol, left, right)
        if not swallow:
            return made
        failed = safe.any_of(left.failed, right.failed)
        return Term(made.sql, made.type, nullable=True, failed=failed, columns=made.columns)

    return rule


def _hash(name: str, result: Scalar) -> Rule:
    def rule(args: Sequence[Term]) -> Term:
        if not args:
            raise FaultError("takes 1 argument or more, not 0")
        given = checked(args, [simple] * len(args))
        sql = f"{name}({', '.join(a.sql for a in given)})"
        return safe.strict(sql, result, given, nullable=False)

    return rule


def _sha2(args: Sequence[Term]) -> Term:
    value, _ = checked(args, [octets, number])
    bits = literal_int(args[1], "argument 2", 0, max(_HASH_BITS))
    if bits not in _HASH_BITS:
        raise FaultError("needs argument 2 to be 224, 256, 384 or 512")
    return safe.strict(f"sha2({value.sql}, {bits})", Scalar.STRING, [value])


def _of_double(name: str, meaning: str, *, nullable: bool | None = None) -> Function:
    rule = plain(Scalar.DOUBLE, name + "({0})", double, nullable=nullable)
    return Function(name, f"{name}(x)", "DOUBLE", meaning, rule)


def _try(name: str, symbol: str) -> Function:
    rule = _operator(symbol, swallow=True)
    meaning = f"`x {symbol} y`, null where that fails"
    return Function(name, f"{name}(x, y)", f"as `x {symbol} y`", meaning, rule)


TABLE: tuple[Function, ...] = (
    Function("abs", "abs(x)", "as x", "without its sign", _absolute, fails="it does not fit"),
    Function(
        "ceil",
        "ceil(x)",
        "BIGINT, or DECIMAL of a DECIMAL",
        "the least whole number that is not less",
        _whole("ceil"),
        also=("ceiling",),
    ),
    Function(
        "floor",
        "floor(x)",
        "BIGINT, or DECIMAL of a DECIMAL",
        "the greatest whole number that is not more",
        _whole("floor"),
    ),
    Function(
        "round",
        "round(x [, digits])",
        "as x, a DECIMAL with fewer digits",
        "rounded half up to a literal number of digits behind the point (0 unless said)",
        _round,
    ),
    Function(
        "pow",
        "pow(x, y)",
        "DOUBLE",
        "x to the power of y",
        plain(Scalar.DOUBLE, "pow({0}, {1})", double, double),
        also=("power",),
    ),
    _of_double("sqrt", "the square root; NaN of a negative number"),
    _of_double("exp", "e to the power of x"),
    _of_double("ln", "the natural logarithm; null of zero and less", nullable=True),
    _of_double("log10", "the logarithm to base 10; null of zero and less", nullable=True),
    _of_double("log2", "the logarithm to base 2; null of zero and less", nullable=True),
    Function(
        "sign",
        "sign(x)",
        "DOUBLE",
        "-1.0, 0.0 or 1.0",
        plain(Scalar.DOUBLE, "sign({0})", double),
        also=("signum",),
    ),
    Function(
        "isnan",
        "isnan(x)",
        "BOOLEAN",
        "whether it is no number; false of null",
        plain(Scalar.BOOLEAN, "isnan({0})", double, nullable=False),
    ),
    Function(
        "mod",
        "mod(x, y)",
        "as `x % y`",
        "the remainder of a division, with the sign of x; also written `x % y`",
        _operator("%", swallow=False),
        fails="y is 0",
    ),
    Function(
        "greatest",
        "greatest(value, …)",
        "the common type",
        "the greatest that is not null",
        _extreme("greatest"),
    ),
    Function(
        "least",
        "least(value, …)",
        "the common type",
        "the least that is not null",
        _extreme("least"),
    ),
    _try("try_add", "+"),
    _try("try_subtract", "-"),
    _try("try_multiply", "*"),
    _try("try_divide", "/"),
    _try("try_mod", "%"),
    Function(
        "hash",
        "hash(value, …)",
        "INT",
        "a 32-bit hash (Murmur3), the same everywhere",
        _hash("hash", Scalar.INT),
    ),
    Function(
        "xxhash64",
        "xxhash64(value, …)",
        "BIGINT",
        "a 64-bit hash (xxHash)",
        _hash("xxhash64", Scalar.LONG),
    ),
    Function(
        "crc32",
        "crc32(text or bytes)",
        "BIGINT",
        "the CRC-32 checksum",
        plain(Scalar.LONG, "crc32({0})", octets),
    ),
    Function(
        "md5",
        "md5(text or bytes)",
        "STRING",
        "the MD5 digest in hexadecimal",
        plain(Scalar.STRING, "md5({0})", octets),
    ),
    Function(
        "sha1",
        "sha1(text or bytes)",
        "STRING",
        "the SHA-1 digest in hexadecimal",
        plain(Scalar.STRING, "sha1({0})", octets),
        also=("sha",),
    ),
    Function(
        "sha2",
        "sha2(text or bytes, bits)",
        "STRING",
        "the SHA-2 digest of 224, 256, 384 or 512 bits in hexadecimal",
        _sha2,
    ),
)
"""Every function of numbers, and every hash."""
