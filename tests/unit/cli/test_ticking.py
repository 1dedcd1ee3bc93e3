"""Whoever waits for something long sees that it goes on."""

from __future__ import annotations

import os
import time

from penstock.cli.progress import ticking
from tests.patience import within


def test_a_wait_is_told_and_leaves_nothing_behind() -> None:
    read, write = os.pipe()
    with ticking("asking Spark", write):
        assert os.read(read, 100).decode() == "\r\x1b[Kasking Spark … 0 s"
    assert os.read(read, 100).decode() == "\r\x1b[K"
    assert os.read(read, 100) == b"", "the descriptor was closed"
    os.close(read)


def test_where_nobody_looks_nothing_is_told() -> None:
    begun_s = time.monotonic()
    with ticking("asking Spark", None):
        pass
    assert time.monotonic() - begun_s < within(1.0)
