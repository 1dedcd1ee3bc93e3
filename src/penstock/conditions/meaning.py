"""What conditions mean: from a tree to a function of an event's fields, which never raises. Pure.

A field that is not there is null: it equals nothing but null, is neither less nor more than anything, and matches
nothing. A text that is a number compares as one with numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from penstock.conditions.nodes import (
    And,
    Compare,
    Condition,
    Contains,
    Exists,
    Field,
    In,
    Literal,
    Matches,
    Not,
    Operand,
    Or,
    Scalar,
)
from penstock.conditions.paths import Fields, getter
from penstock.conditions.patterns import compile_pattern
from penstock.conditions.texts import as_text

Test: TypeAlias = Callable[[Fields], bool]

_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compile_condition(condition: Condition) -> Test:
    match condition:
        case And(parts):
            tests = [compile_condition(part) for part in parts]
            return _both(*tests) if len(tests) == 2 else lambda fields: all(test(fields) for test in tests)
        case Or(parts):
            tests = [compile_condition(part) for part in parts]
            return lambda fields: any(test(fields) for test in tests)
        case Not(inner):
            test = compile_condition(inner)
            return lambda fields: not test(fields)
        case Exists(path):
            get = getter(path)
            return lambda fields: get(fields) is not None
        case In(left, choices):
            return _in(left, choices)
        case Matches(left, pattern):
            look, search = _looker(left), compile_pattern(pattern).found
            return lambda fields: (value := look(fields)) is not None and search(as_text(value))
        case Contains(left, text):
            look = _looker(left)
            return lambda fields: _contains(look(fields), text)
        case Compare():
            return _comparison(condition)


def patterns_of(condition: Condition) -> list[str]:
    """All patterns in it, to be checked before it is used."""
    match condition:
        case And(parts) | Or(parts):
            return [pattern for part in parts for pattern in patterns_of(part)]
        case Not(inner):
            return patterns_of(inner)
        case Matches(_, pattern):
            return [pattern]
    return []


def _both(one: Test, other: Test) -> Test:
    return lambda fields: one(fields) and other(fields)


def _looker(operand: Operand) -> Callable[[Fields], Any]:
    if isinstance(operand, Field):
        return getter(operand.path)
    value = operand.value
    return lambda _: value


def _contains(value: Any, text: str) -> bool:
    if isinstance(value, list):
        return text in value
    return value is not None and text in as_text(value)


def _in(left: Operand, choices: tuple[Scalar, ...]) -> Test:
    look = _looker(left)
    # 1 and True are one key to Python, not to people: kinds are compared too.
    texts = {choice for choice in choices if isinstance(choice, str)}
    others = [choice for choice in choices if not isinstance(choice, str)]

    def test(fields: Fields) -> bool:
        value = look(fields)
        if isinstance(value, str) and value in texts:
            return True
        return any(equal(value, other) for other in others) or (
            not isinstance(value, str) and any(equal(value, text) for text in texts)
        )

    return test


def _comparison(condition: Compare) -> Test:
    if isinstance(condition.left, Field) and isinstance(condition.right, Literal):
        special = _field_with_literal(condition.left.path, condition.op, condition.right.value)
        if special is not None:
            return special
    left, right = _looker(condition.left), _looker(condition.right)
    if condition.op == "==":
        return lambda fields: equal(left(fields), right(fields))
    if condition.op == "!=":
        return lambda fields: not equal(left(fields), right(fields))
    order = _ORDERS[condition.op]
    return lambda fields: _ordered(order, left(fields), right(fields))


def _field_with_literal(path: str, op: str, literal: Scalar) -> Test | None:
    """The usual shape without detours: a field and a value of a known kind."""
    get = getter(path)
    if isinstance(literal, str) and op in ("==", "!="):
        wanted = op == "=="
        return lambda fields: (
            (value == literal) is wanted if type(value := get(fields)) is str else equal(value, literal) is wanted
        )
    if type(literal) is int and op in _ORDERS:
        order = _ORDERS[op]
        return lambda fields: (
            order(value, literal) if type(value := get(fields)) is int else _ordered(order, value, literal)
        )
    return None


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, str) is not isinstance(right, str):
        left, right = _as_numbers(left, right)
        return left is not None and left == right
    return bool(left == right)


def _ordered(order: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    if isinstance(left, str) and isinstance(right, str):
        return order(left, right)
    left, right = _as_numbers(left, right)
    return left is not None and order(left, right)


def _as_numbers(left: Any, right: Any) -> tuple[Any, Any]:
    """Both as numbers, or None and None."""
    one, other = _as_number(left), _as_number(right)
    return (None, None) if one is None or other is None else (one, other)


def _as_number(value: Any) -> int | float | None:
    if isinstance(value, (int, float)):
        return value
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        return int(value)
    except ValueError:
        try:
            return float(value)
        except ValueError:
            return None
