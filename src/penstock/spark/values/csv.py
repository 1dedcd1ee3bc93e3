"""Lines of CSV as columns: one value is one row.

Values are joined to lines and parsed at once by pyarrow.csv into columns of text. Rows and values stay in step: a value
that is empty or holds a line end is parsed alone, so that every other is one line. A quote left open can only swallow
lines, never add any; so when as many rows come out as lines went in, and the last one ends, each is its own. When fewer
do, the values with an odd number of quotes are parsed alone too, and the rest is halved and parsed again, down to one.

Quotes are doubled inside quotes unless `value.csv.escape` names another way; a field that is empty and not quoted (or
equals `value.csv.null`) is null. A line that does not have a field for every column is bad.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from penstock.spark.values.decoded import Decoded, settle, shortened
from penstock.spark.values.options import ValueOptions
from penstock.spark.values.text import not_text
from penstock.spark.values.text_columns import TextColumns

CHUNK_ROWS: Final = 4096

_Bad = list[tuple[int, str]]
_Piece = tuple[Sequence[int], pa.Table]
"""Row numbers and their fields as text."""


class CsvDecoder:
    """One line a value."""

    def __init__(self, schema: pa.Schema, options: ValueOptions) -> None:
        self.schema = schema
        self._quote = options.csv_quote.encode()
        self._columns = TextColumns(schema)
        self._texts = pa.schema([(f"f{index}", pa.string()) for index in range(len(schema))])
        marks = (options.csv_delimiter, options.csv_quote, options.csv_escape, options.csv_null)
        self._last_fields = [next(letter for letter in "abcde" if letter not in marks)] * len(schema)
        self._last_line = (options.csv_delimiter.join(self._last_fields) + "\n").encode()
        self._parsing: dict[str, Any] = {
            "delimiter": options.csv_delimiter,
            "quote_char": options.csv_quote,
            "double_quote": True,
            "escape_char": options.csv_escape or False,
            "newlines_in_values": True,
            "ignore_empty_lines": False,
        }
        self._converting = arrow_csv.ConvertOptions(
            column_types=self._texts,
            null_values=[options.csv_null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )

    def decode(self, values: pa.Array) -> Decoded:
        bad: _Bad = []
        pieces: list[_Piece] = []
        for start in range(0, len(values), CHUNK_ROWS):
            chunk = values.slice(start, CHUNK_ROWS)
            rows, lines = _lines(chunk, range(start, start + len(chunk)), bad)
            if not (rows and self._at_once(rows, lines, pieces, bad)):
                self._with_care(rows, lines, pieces, bad)
        kept, columns = self._in_order(pieces)
        return settle(len(values), self._columns.typed(kept, columns, bad), bad)

    def _at_once(self, rows: Sequence[int], lines: list[bytes | None], pieces: list[_Piece], bad: _Bad) -> bool:
        """All lines in one go, which most chunks allow; False, and nothing done, where one needs care."""
        if None in lines or b"" in lines:
            return False
        given = cast("list[bytes]", lines)
        data = b"\n".join(given) + b"\n"
        if data.count(b"\n") != len(lines) or b"\r" in data:
            return False
        return self._settled(rows, given, data, pieces, bad)

    def _with_care(self, rows: Sequence[int], lines: list[bytes | None], pieces: list[_Piece], bad: _Bad) -> None:
        """Lines that could not be told from others are parsed alone, and the rest together."""
        safe: list[tuple[int, bytes]] = []
        for row, line in zip(rows, lines, strict=True):
            if not line or b"\n" in line or b"\r" in line or line.count(self._quote) % 2:
                self._one(row, line, pieces, bad)
            else:
                safe.append((row, line))
        self._many([row for row, _ in safe], [line for _, line in safe], pieces, bad)

    def _in_order(self, pieces: list[_Piece]) -> tuple[list[int], list[pa.Array]]:
        kept = [row for rows, _ in pieces for row in rows]
        table = pa.concat_tables([piece for _, piece in pieces] or [self._texts.empty_table()])
        order = sorted(range(len(kept)), key=kept.__getitem__)
        if order != list(range(len(kept))):
            kept = [kept[position] for position in order]
            table = table.take(pa.array(order, pa.int64()))
        return kept, [_one_array(table.column(index)) for index in range(len(self.schema))]

    def _one(self, row: int, line: bytes | None, pieces: list[_Piece], bad: _Bad) -> None:
        if line is None:
            nothing = {name: pa.nulls(1, pa.string()) for name in self._texts.names}
            pieces.append(([row], pa.table(nothing, schema=self._texts)))
            return
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if not line and len(self.schema) > 1:
            bad.append((row, f"wanted {len(self.schema)} columns, found an empty line"))
            return
        table, wrong = self._parse(line + b"\n")
        if table is None:
            bad.append((row, f"not a line of CSV: a quote that is not closed, in {shortened(line)}"))
        elif len(table) + len(wrong) != 1:
            bad.append((row, f"not a line of CSV: more than one line, in {shortened(line)}"))
        elif wrong:
            bad.append((row, self._miscounted(wrong[0][1], line)))
        else:
            pieces.append(([row], table))

    def _many(self, rows: Sequence[int], lines: list[bytes], pieces: list[_Piece], bad: _Bad) -> None:
        if len(rows) <= 1:
            for row, line in zip(rows, lines, strict=True):
                self._one(row, line, pieces, bad)
        elif not self._settled(rows, lines, b"\n".join(lines) + b"\n", pieces, bad):
            half = len(rows) // 2
            self._many(rows[:half], lines[:half], pieces, bad)
            self._many(rows[half:], lines[half:], pieces, bad)

    def _settled(self, rows: Sequence[int], lines: list[bytes], data: bytes, pieces: list[_Piece], bad: _Bad) -> bool:
        """Parses `data`, the lines as one; False, and nothing done, when some line swallowed another."""
        table, wrong = self._parse(data)
        if table is None or len(table) + len(wrong) != len(rows):
            return False
        bad.extend((rows[position], self._miscounted(count, lines[position])) for position, count in wrong)
        if wrong:
            miscounted = {position for position, _ in wrong}
            rows = [row for position, row in enumerate(rows) if position not in miscounted]
        pieces.append((rows, table))
        return True

    def _miscounted(self, found: int, line: bytes) -> str:
        return f"wanted {len(self.schema)} columns, found {found}, in {shortened(line)}"

    def _parse(self, data: bytes) -> tuple[pa.Table | None, list[tuple[int, int]]]:
        """Columns of text for the lines with the right number of fields; position and number for each of the others.

        No table when the last line does not end: a line that is put after it must come out again.
        """
        wrong: list[tuple[int, int]] = []

        def refuse(row: Any) -> str:
            wrong.append((row.number - 1, row.actual_columns))
            return "skip"

        data += self._last_line
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            # One block on one thread: only then are lines numbered.
            arrow_csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self._texts.names),
            arrow_csv.ParseOptions(**self._parsing, invalid_row_handler=refuse),
            self._converting,
        )
        if not len(table) or any(table.column(at)[-1].as_py() != text for at, text in enumerate(self._last_fields)):
            return None, wrong
        return table.slice(0, len(table) - 1), wrong


def _lines(values: pa.Array, rows: Sequence[int], bad: _Bad) -> tuple[Sequence[int], list[bytes | None]]:
    """The values that are UTF-8, and their row numbers."""
    try:
        pc.cast(values, pa.string())
        return rows, values.to_pylist()
    except pa.ArrowInvalid:
        kept: list[tuple[int, bytes | None]] = []
        for row, value in zip(rows, values.to_pylist(), strict=True):
            why = not_text(value)
            if why is None:
                kept.append((row, value))
            else:
                bad.append((row, why))
        return [row for row, _ in kept], [value for _, value in kept]


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)
