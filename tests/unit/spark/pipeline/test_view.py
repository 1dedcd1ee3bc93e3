"""What people and programs see of a running pipeline."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from penstock.spark.pipeline import home
from penstock.spark.pipeline.home import Progress, SinkProgress, State
from penstock.spark.pipeline.view import HEADINGS, JsonLines, Lines, drawn, row, sentence

STATE = State("orders", home.RUNNING, 1, "b", "h", "/p.toml", "d", "local", "b:1", "/lake", 1)
SINK = SinkProgress(
    "lake",
    "table",
    "orders",
    "running",
    "orders-lake",
    batch_id=7,
    rows=12_345,
    rows_per_s=1234.5,
    lag=99,
    batch_ms=1500,
    watermark="2026-11-01T10:00:00.000Z",
    state_rows=42,
    late_rows=1_003,
    at_ms=1000,
)


def test_a_row_has_a_cell_for_each_heading() -> None:
    cells = row(SINK, 4000)
    assert dict(zip(HEADINGS, cells, strict=True)) == {
        "SINK": "lake",
        "STATE": "running",
        "ROWS/S": "1,234",
        "LAG": "99",
        "BATCH": 7,
        "TOOK": "1.50 s",
        "READ": "12,345",
        "WATERMARK": "2026-11-01 10:00:00",
        "LATE": "1,003",
        "STATE ROWS": "42",
        "LAST": "3 s ago",
    }
    assert row(replace(SINK, batch_id=-1, at_ms=0, watermark="1970-01-01T00:00:00.000Z"), 0)[2:6] == (None,) * 4


def test_a_sentence_says_why_a_sink_does_not_run() -> None:
    failed = replace(SINK, state="failed", error="disk full")
    assert sentence(failed) == "lake → table orders: failed: disk full"
    assert sentence(SINK).startswith(
        "lake → table orders: running, batch 7 took 1.50 s, 1,234 rows/s, 12,345 rows read so far"
    )


def test_rows_that_came_too_late_are_told() -> None:
    assert "1,003 rows came too late" in sentence(SINK)
    assert "too late" not in sentence(replace(SINK, late_rows=0))


def test_lines_tell_changes_once() -> None:
    out = io.StringIO()
    lines = Lines(out)
    for progress in (None, Progress(1, home.RUNNING, (SINK,)), Progress(2, home.RUNNING, (SINK,))):
        lines.show(STATE, progress)
    lines.show(STATE, Progress(3, home.RUNNING, (replace(SINK, state="retrying", error="x"),)))
    told = out.getvalue().splitlines()
    assert [line.split(":")[0] for line in told] == [
        "orders is running",
        "  lake → table orders",
        "  lake → table orders",
    ]
    assert told[-1] == "  lake → table orders: retrying: x"


def test_programs_get_one_object_a_snapshot() -> None:
    out = io.StringIO()
    lines = JsonLines(out)
    for _ in range(2):
        lines.show(STATE, Progress(5, home.RUNNING, (SINK,)))
    (only,) = map(json.loads, out.getvalue().splitlines())
    assert (only["name"], only["at_ms"], only["sinks"][0]["lag"]) == ("orders", 5, 99)


def test_a_terminal_shows_sinks_in_a_table_and_errors_below_it() -> None:
    from rich.console import Console

    out = Console(file=io.StringIO(), width=120)
    failed = replace(SINK, sink="other", state="failed", error="disk [full]")
    out.print(drawn(replace(STATE, restarts=2), Progress(1, home.RUNNING, (SINK, failed)), 4000))
    title, headings, first, second, words = out.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert title == "orders  running  local, restarted 2×"
    assert headings.split() == " ".join(HEADINGS).split()
    assert first.split()[:5] == ["lake", "running", "1,234", "99", "7"]
    assert second.split()[:2] == ["other", "failed"]
    assert words == "other: disk [full]"
