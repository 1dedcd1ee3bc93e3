"""The grammar of Spark's language for types and columns, apart from the types themselves. Needs no Spark.

So whoever checks a file on a machine without Spark finds a type that is none, and the names of columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from penstock.spark.errors import BadOption

_TOKEN: Final = re.compile(
    r"""\s*(?:
        `(?P<quoted>(?:[^`]|``)+)`
      | (?P<word>[^\W\d]\w*|\d+\w*[^\W\d]\w*)
      | (?P<number>\d+)
      | '(?P<single>(?:[^'\\]|\\.)*)'
      | "(?P<double>(?:[^"\\]|\\.)*)"
      | (?P<mark>[<>(),:])
    )""",
    re.VERBOSE,
)

_PLAIN: Final[dict[str, str]] = {
    "boolean": "BooleanType",
    "tinyint": "ByteType",
    "byte": "ByteType",
    "smallint": "ShortType",
    "short": "ShortType",
    "int": "IntegerType",
    "integer": "IntegerType",
    "bigint": "LongType",
    "long": "LongType",
    "float": "FloatType",
    "real": "FloatType",
    "double": "DoubleType",
    "binary": "BinaryType",
    "date": "DateType",
    "timestamp_ntz": "TimestampNTZType",
    "timestamp_ltz": "TimestampType",
    "variant": "VariantType",
    "void": "NullType",
}
"""Types that are a word, by the names of Spark's classes."""
_DAY_TIME: Final = ("day", "hour", "minute", "second")
_YEAR_MONTH: Final = ("year", "month")


def names_in(ddl: str) -> list[str]:
    """The columns that `ddl` declares, by name; `BadOption` for what `struct_of` could not read either."""
    return [name for name, *_ in read_columns(ddl, _NoTypes())]


def read_columns(ddl: str, kinds: Any) -> list[Any]:
    """The columns that `ddl` declares, made by `kinds`."""
    reader = Reader(ddl, kinds)
    whole = reader.at_word("struct") and reader.peek(1) == "<"
    found = reader.struct() if whole else reader.fields(closing=None)
    reader.expect_end()
    return found


class _NoTypes:
    """Stands in for Spark's types where only names are wanted: whatever is made is what it was made of."""

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        return lambda *parts: parts


class Reader:
    """A recursive descent over the tokens; `kinds` makes types and columns of what it meets."""

    def __init__(self, ddl: str, kinds: Any) -> None:
        """`kinds` is the module with Spark's types, or what stands in for it."""
        self._ddl, self._kinds = ddl, kinds
        self._tokens: list[tuple[str, str, int]] = []
        at = 0
        while ddl[at:].strip():
            match = _TOKEN.match(ddl, at)
            if match is None or match.lastgroup is None:
                raise self._wrong(at + len(ddl[at:]) - len(ddl[at:].lstrip()), "a name, a type or a punctuation mark")
            self._tokens.append((match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
            at = match.end()
        self._at = 0

    def peek(self, ahead: int = 0) -> str | None:
        """The mark or word there, in lower case; None at the end."""
        index = self._at + ahead
        return self._tokens[index][1].lower() if index < len(self._tokens) else None

    def at_word(self, word: str) -> bool:
        return self.peek() == word and self._tokens[self._at][0] == "word"

    def expect_end(self) -> None:
        if self._at < len(self._tokens):
            raise self._wrong_here("the end")

    def fields(self, closing: str | None) -> list[Any]:
        """Columns up to `closing`, which is taken too."""
        found: list[Any] = []
        if closing is not None and self._take_mark(closing):
            return found
        while True:
            found.append(self._field())
            if self._take_mark(","):
                continue
            if closing is not None and not self._take_mark(closing):
                raise self._wrong_here(f"a comma or {closing}")
            return found

    def _field(self) -> Any:
        kind, name, _ = self._next("the name of a column", ("word", "quoted", "number"))
        name = name.replace("``", "`") if kind == "quoted" else name
        self._take_mark(":")
        data_type = self.type()
        nullable = True
        if self._take_word("not"):
            self._need_word("null")
            nullable = False
        metadata = {"comment": self._text()} if self._take_word("comment") else None
        return self._kinds.StructField(name, data_type, nullable, metadata)

    def type(self) -> Any:
        at = self._at
        _, word, _ = self._next("a type", ("word",))
        name = word.lower()
        if name in _PLAIN:
            return getattr(self._kinds, _PLAIN[name])()
        match name:
            case "string":
                if self._take_word("collate"):
                    return self._kinds.StringType(self._next("a collation", ("word", "quoted"))[1].upper())
                return self._kinds.StringType()
            case "timestamp":
                if self._take_word("without"):
                    for part in ("time", "zone"):
                        self._need_word(part)
                    return self._kinds.TimestampNTZType()
                return self._kinds.TimestampType()
            case "decimal" | "dec" | "numeric":
                return self._decimal()
            case "time":
                sizes = self._sizes(most=1)
                return self._kinds.TimeType(*sizes)
            case "char" | "character":
                return self._kinds.CharType(self._size())
            case "varchar":
                return self._kinds.VarcharType(self._size())
            case "interval":
                return self._interval()
            case "array":
                self._need_mark("<")
                element = self.type()
                self._need_mark(">")
                return self._kinds.ArrayType(element)
            case "map":
                self._need_mark("<")
                key = self.type()
                self._need_mark(",")
                value = self.type()
                self._need_mark(">")
                return self._kinds.MapType(key, value)
            case "struct":
                self._at = at
                return self._kinds.StructType(self.struct())
        self._at = at
        raise self._wrong_here("a type of Spark such as BIGINT, STRING, DECIMAL(10,2), TIMESTAMP, ARRAY<…>")

    def struct(self) -> list[Any]:
        """The columns of a whole `struct<…>`."""
        self._need_word("struct")
        self._need_mark("<")
        return self.fields(closing=">")

    def _decimal(self) -> Any:
        at = self._at
        sizes = self._sizes(most=2)
        precision, scale = (sizes + [10, 0][len(sizes) :])[:2]
        if not (1 <= precision <= 38 and scale <= precision):
            self._at = at
            raise self._wrong_here("a precision of 1 to 38 and a scale that is no greater")
        return self._kinds.DecimalType(precision, scale)

    def _interval(self) -> Any:
        if self.peek() not in (*_DAY_TIME, *_YEAR_MONTH):
            return self._kinds.CalendarIntervalType()
        first = self._next("a unit", ("word",))[1].lower()
        last = self._next("a unit", ("word",))[1].lower() if self._take_word("to") else first
        for units, made in (
            (_DAY_TIME, self._kinds.DayTimeIntervalType),
            (_YEAR_MONTH, self._kinds.YearMonthIntervalType),
        ):
            if first in units and last in units and units.index(first) <= units.index(last):
                return made(units.index(first), units.index(last))
        self._at -= 1
        raise self._wrong_here("units from large to small, such as DAY TO SECOND")

    def _sizes(self, most: int) -> list[int]:
        found: list[int] = []
        if self._take_mark("("):
            while True:
                found.append(int(self._next("a number", ("number",))[1]))
                if len(found) == most or not self._take_mark(","):
                    break
            self._need_mark(")")
        return found

    def _size(self) -> int:
        sizes = self._sizes(most=1)
        if not sizes:
            raise self._wrong_here("a length in parentheses")
        return sizes[0]

    def _text(self) -> str:
        _, text, _ = self._next("a text in quotes", ("single", "double"))
        return re.sub(r"\\(.)", r"\1", text)

    def _next(self, wanted: str, kinds: tuple[str, ...]) -> tuple[str, str, int]:
        if self._at >= len(self._tokens) or self._tokens[self._at][0] not in kinds:
            raise self._wrong_here(wanted)
        self._at += 1
        return self._tokens[self._at - 1]

    def _take_mark(self, mark: str) -> bool:
        return self._take("mark", mark)

    def _take_word(self, word: str) -> bool:
        return self._take("word", word)

    def _take(self, kind: str, text: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at][0] == kind and self.peek() == text:
            self._at += 1
            return True
        return False

    def _need_mark(self, mark: str) -> None:
        if not self._take_mark(mark):
            raise self._wrong_here(mark)

    def _need_word(self, word: str) -> None:
        if not self._take_word(word):
            raise self._wrong_here(word.upper())

    def _wrong_here(self, wanted: str) -> BadOption:
        at = self._tokens[self._at][2] if self._at < len(self._tokens) else len(self._ddl)
        return self._wrong(at, wanted)

    def _wrong(self, at: int, wanted: str) -> BadOption:
        rest = self._ddl[at : at + 20]
        found = f"{rest!r}" if rest else "its end"
        return BadOption(f"the schema {self._ddl[:200]!r} has {found} at character {at + 1} where {wanted} is expected")
