"""Values taken apart by a pattern: each named group is a column. RE2, so that no pattern takes for ever."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.values.decoded import Decoded, settle, shortened
from penstock.spark.values.options import ValueOptions
from penstock.spark.values.text import texts_of
from penstock.spark.values.text_columns import TextColumns


class RegexDecoder:
    """A value that the pattern is found in becomes a row; one without a match is bad.

    A group that took no part in the match is an empty string, as in Spark's regexp_extract, and null in a column of any
    other type.
    """

    def __init__(self, schema: pa.Schema, options: ValueOptions) -> None:
        self.schema = schema
        self._pattern = options.regex_pattern
        self._columns = TextColumns(schema)

    def decode(self, values: pa.Array) -> Decoded:
        texts, bad = texts_of(values)
        rows = _other_rows(len(values), {row for row, _ in bad})
        found = pc.extract_regex(texts, self._pattern)
        for position in pc.indices_nonzero(pc.and_(found.is_null(), texts.is_valid())).to_pylist():
            bad.append((rows[position], f"no match for {shortened(self._pattern)} in {shortened(texts[position])}"))
        if bad:
            matched = pc.or_(found.is_valid(), texts.is_null())
            found = found.filter(matched)
            rows = pa.array(rows, pa.int64()).filter(matched).to_pylist()
        groups = [self._group(found, field) for field in self.schema]
        return settle(len(values), self._columns.typed(rows, groups, bad), bad)

    def _group(self, found: pa.Array, field: pa.Field) -> pa.Array:
        group = pc.struct_field(found, field.name)
        if pa.types.is_string(field.type):
            return group
        return pc.if_else(pc.equal(group, ""), pa.scalar(None, pa.string()), group)


def _other_rows(count: int, without: set[int]) -> list[int]:
    return [row for row in range(count) if row not in without] if without else list(range(count))
