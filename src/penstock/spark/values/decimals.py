"""Decimals that fit a column: rounded half up to its scale, as Spark does; too many digits are refused."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Final

_WIDE: Final = Context(prec=80, rounding=ROUND_HALF_UP)
"""Wide enough for any decimal of Spark, 38 digits, on both sides of the point."""


def fitted(number: Decimal, precision: int, scale: int) -> Decimal:
    """`number` in DECIMAL(precision, scale); `ValueError` when it does not fit."""
    if not number.is_finite():
        raise ValueError
    try:
        rounded = number.quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    except InvalidOperation:
        raise ValueError from None
    if len(rounded.as_tuple().digits) > precision and rounded:
        raise ValueError
    return rounded


def decimal_of(text: str, precision: int, scale: int) -> Decimal:
    """The decimal that `text` spells, fitted; `ValueError` when there is none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError from None
    return fitted(number, precision, scale)
