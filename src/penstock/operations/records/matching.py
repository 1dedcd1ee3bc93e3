"""Which records somebody looks for: a condition in the language of the agents, a text that occurs, or both. Pure.

A condition sees `key`, `value`, `headers`, `topic`, `partition`, `offset`, `timestamp` and `size`. A key or value that
is JSON has its fields (`value.amount`), another one is its text. No code is evaluated, and patterns take linear time.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from penstock.conditions.grammar import ConditionBroken, parse
from penstock.conditions.meaning import Test, compile_condition, patterns_of
from penstock.conditions.patterns import PatternBroken, compile_pattern
from penstock.model.errors import PenstockError
from penstock.operations.records.stored import Stored

TEXT_MAX: Final = 4_096
JSON_BYTES_MAX: Final = 1 << 20


class BadCondition(PenstockError):
    """A text is no condition; `at` is where in it the mistake is."""

    def __init__(self, words: str, at: int = 0, attempt: str = "") -> None:
        super().__init__(words)
        self.words, self.at, self.attempt = words, at, attempt


def size_of(record: Stored) -> int:
    """Bytes of what a producer gave: key, value and headers."""
    own = len(record.key or b"") + len(record.value or b"")
    return own + sum(len(name) + len(value or b"") for name, value in record.headers)


class Matcher:
    """Says of a record whether it is looked for. `unreadable` counts those too large for a condition to look into."""

    def __init__(self, where: str | None = None, contains: str | None = None) -> None:
        """BadCondition, with the place of the mistake, for what is none."""
        if len(where or "") > TEXT_MAX or len(contains or "") > TEXT_MAX:
            raise BadCondition(f"a condition has {TEXT_MAX} characters at most")
        self._test = compiled(where) if where and where.strip() else None
        self._text = contains.encode("utf-8", "surrogatepass") if contains else None
        self.unreadable = 0

    def __call__(self, record: Stored) -> bool:
        if self._text is not None and not _has(record, self._text):
            return False
        if self._test is None:
            return True
        if len(record.value or b"") > JSON_BYTES_MAX or len(record.key or b"") > JSON_BYTES_MAX:
            self.unreadable += 1
            return False
        return self._test(fields_of(record))


def compiled(where: str) -> Test:
    try:
        condition = parse(where)
        for pattern in patterns_of(condition):
            if not compile_pattern(pattern).linear:
                words = f"{pattern!r} has look-around or back-references"
                raise BadCondition(words, attempt="a condition takes patterns of RE2, which have neither")
        return compile_condition(condition)
    except ConditionBroken as wrong:
        raise BadCondition(wrong.words, wrong.at) from None
    except PatternBroken as wrong:
        raise BadCondition(str(wrong)) from None


def fields_of(record: Stored) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "size": size_of(record),
        "key": _value(record.key),
        "value": _value(record.value),
        "headers": {name: _value(value) for name, value in record.headers},
    }


def _value(data: bytes | None) -> Any:
    """JSON by its fields, else text; bytes that are neither are text with what is no character marked."""
    if data is None:
        return None
    if data[:1] in (b"{", b"["):
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            pass
    return data.decode("utf-8", "replace")


def _has(record: Stored, text: bytes) -> bool:
    return (
        text in (record.value or b"")
        or text in (record.key or b"")
        or any(text in (value or b"") or text in name.encode("utf-8", "replace") for name, value in record.headers)
    )
