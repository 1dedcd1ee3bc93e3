"""Spark's language for types and columns, read without a JVM: `id BIGINT NOT NULL, tags ARRAY<STRING>`.

Spark's own reader of it needs a running session; planners and workers of Python data sources have none. Reads every
type that Spark 4.3 writes except geography and geometry, `NOT NULL`, `COMMENT 'text'`, names in back-quotes, the colon
form `id: bigint` and a whole `struct<…>`. `BadOption` says where it stopped.
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import types as T  # noqa: N812 - as everybody calls it

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

_PLAIN: Final[dict[str, T.DataType]] = {
    "boolean": T.BooleanType(),
    "tinyint": T.ByteType(),
    "byte": T.ByteType(),
    "smallint": T.ShortType(),
    "short": T.ShortType(),
    "int": T.IntegerType(),
    "integer": T.IntegerType(),
    "bigint": T.LongType(),
    "long": T.LongType(),
    "float": T.FloatType(),
    "real": T.FloatType(),
    "double": T.DoubleType(),
    "binary": T.BinaryType(),
    "date": T.DateType(),
    "timestamp_ntz": T.TimestampNTZType(),
    "timestamp_ltz": T.TimestampType(),
    "variant": T.VariantType(),
    "void": T.NullType(),
}
_DAY_TIME: Final = ("day", "hour", "minute", "second")
_YEAR_MONTH: Final = ("year", "month")
_UNQUOTED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def struct_of(ddl: str) -> T.StructType:
    """The columns that `ddl` declares."""
    reader = _Reader(ddl)
    if reader.at_word("struct") and reader.peek(1) == "<":
        found = reader.type()
        assert isinstance(found, T.StructType)
    else:
        found = T.StructType(reader.fields(closing=None))
    reader.expect_end()
    _refuse_twins(found, "")
    return found


def ddl_of(struct: T.StructType) -> str:
    """Columns as text that `struct_of` and Spark read back as they are, comments included."""
    return ", ".join(_column(field, " ") for field in struct.fields)


def _column(field: T.StructField, between: str) -> str:
    name = field.name if _UNQUOTED.fullmatch(field.name) else "`" + field.name.replace("`", "``") + "`"
    comment = (field.metadata or {}).get("comment")
    said = " COMMENT '" + comment.replace("\\", "\\\\").replace("'", "\\'") + "'" if comment else ""
    return f"{name}{between}{type_text(field.dataType)}{'' if field.nullable else ' NOT NULL'}{said}"


def type_text(kind: T.DataType) -> str:
    """A type as it is written in DDL."""
    if isinstance(kind, T.StructType):
        return f"STRUCT<{', '.join(_column(field, ': ') for field in kind.fields)}>"
    if isinstance(kind, T.ArrayType):
        return f"ARRAY<{type_text(kind.elementType)}>"
    if isinstance(kind, T.MapType):
        return f"MAP<{type_text(kind.keyType)}, {type_text(kind.valueType)}>"
    return kind.simpleString().upper()


def _refuse_twins(kind: T.DataType, where: str) -> None:
    """Spark's columns know no case, so two names that differ in nothing else cannot both be asked for."""
    if isinstance(kind, T.ArrayType):
        _refuse_twins(kind.elementType, where)
    elif isinstance(kind, T.MapType):
        _refuse_twins(kind.valueType, where)
    elif isinstance(kind, T.StructType):
        seen: dict[str, str] = {}
        for field in kind.fields:
            twin = seen.setdefault(field.name.lower(), field.name)
            if twin is not field.name:
                raise BadOption(f"the schema has {where}{field.name} twice: columns know no case")
            _refuse_twins(field.dataType, f"{where}{field.name}.")


class _Reader:
    """A recursive descent over the tokens."""

    def __init__(self, ddl: str) -> None:
        self._ddl = ddl
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

    def fields(self, closing: str | None) -> list[T.StructField]:
        """Columns up to `closing`, which is taken too."""
        found: list[T.StructField] = []
        if closing is not None and self._take_mark(closing):
            return found
        while True:
            found.append(self._field())
            if self._take_mark(","):
                continue
            if closing is not None and not self._take_mark(closing):
                raise self._wrong_here(f"a comma or {closing}")
            return found

    def _field(self) -> T.StructField:
        kind, name, _ = self._next("the name of a column", ("word", "quoted", "number"))
        name = name.replace("``", "`") if kind == "quoted" else name
        self._take_mark(":")
        data_type = self.type()
        nullable = True
        if self._take_word("not"):
            self._need_word("null")
            nullable = False
        metadata = {"comment": self._text()} if self._take_word("comment") else None
        return T.StructField(name, data_type, nullable, metadata)

    def type(self) -> T.DataType:
        at = self._at
        _, word, _ = self._next("a type", ("word",))
        name = word.lower()
        if name in _PLAIN:
            return _PLAIN[name]
        match name:
            case "string":
                if self._take_word("collate"):
                    return T.StringType(self._next("a collation", ("word", "quoted"))[1].upper())
                return T.StringType()
            case "timestamp":
                if self._take_word("without"):
                    for part in ("time", "zone"):
                        self._need_word(part)
                    return T.TimestampNTZType()
                return T.TimestampType()
            case "decimal" | "dec" | "numeric":
                return self._decimal()
            case "time":
                sizes = self._sizes(most=1)
                return T.TimeType(*sizes)
            case "char" | "character":
                return T.CharType(self._size())
            case "varchar":
                return T.VarcharType(self._size())
            case "interval":
                return self._interval()
            case "array":
                self._need_mark("<")
                element = self.type()
                self._need_mark(">")
                return T.ArrayType(element)
            case "map":
                self._need_mark("<")
                key = self.type()
                self._need_mark(",")
                value = self.type()
                self._need_mark(">")
                return T.MapType(key, value)
            case "struct":
                self._need_mark("<")
                return T.StructType(self.fields(closing=">"))
        self._at = at
        raise self._wrong_here("a type of Spark such as BIGINT, STRING, DECIMAL(10,2), TIMESTAMP, ARRAY<…>")

    def _decimal(self) -> T.DecimalType:
        at = self._at
        sizes = self._sizes(most=2)
        precision, scale = (sizes + [10, 0][len(sizes) :])[:2]
        if not (1 <= precision <= 38 and scale <= precision):
            self._at = at
            raise self._wrong_here("a precision of 1 to 38 and a scale that is no greater")
        return T.DecimalType(precision, scale)

    def _interval(self) -> T.DataType:
        if self.peek() not in (*_DAY_TIME, *_YEAR_MONTH):
            return T.CalendarIntervalType()
        first = self._next("a unit", ("word",))[1].lower()
        last = self._next("a unit", ("word",))[1].lower() if self._take_word("to") else first
        for units, made in ((_DAY_TIME, T.DayTimeIntervalType), (_YEAR_MONTH, T.YearMonthIntervalType)):
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
