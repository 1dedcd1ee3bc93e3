"""Words for the tests of decoders."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.spark.values.decoding import Decoded, decoder_of
from penstock.spark.values.options import ValueOptions
from penstock.spark.values.schema import columns_of


def decoded(options: dict[str, str], *values: bytes | None) -> Decoded:
    """What becomes of these values; checked to be whole."""
    chosen = ValueOptions.of(options)
    assert chosen is not None
    found = decoder_of(chosen, columns_of(chosen)).decode(pa.array(values, pa.binary()))
    found.columns.validate(full=True)
    good = list(range(len(values))) if found.good is None else found.good.to_pylist()
    assert sorted(good + [row for row, _ in found.bad]) == list(range(len(values)))
    assert good == sorted(good)
    assert len(good) == found.columns.num_rows
    return found


def rows(found: Decoded) -> list[dict[str, Any]]:
    return found.columns.to_pylist()
