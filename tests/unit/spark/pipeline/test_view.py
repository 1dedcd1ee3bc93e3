"""What people and programs see of a running pipeline."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from penstock.spark.pipeline import home
from penstock.spark.pipeline.home import Progress, SinkProgress, State, failures_of
from penstock.spark.pipeline.view import ECHO_CELLS, HEADINGS, JsonLines, Lines, Silence, drawn, row, sentence, standing

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
    waiting_since_ms=1500,
)


def test_a_row_has_a_cell_for_each_heading() -> None:
    cells = row(SINK, 4000)
    assert dict(zip(HEADINGS, cells, strict=True)) == {
        "SINK": "lake",
        "STATE": "running",
        "ROWS/S": "1,234",
        "LAG": "99",
        "FRESH": "2 s",
        "BATCH": 7,
        "TOOK": "1.50 s",
        "READ": "12,345",
        "WATERMARK": "2026-11-01 10:00:00",
        "LATE": "1,003",
        "STATE ROWS": "42",
        "LAST": "3 s ago",
    }
    never = replace(SINK, batch_id=-1, at_ms=0, watermark="1970-01-01T00:00:00.000Z", waiting_since_ms=-1)
    assert row(never, 0)[2:7] == (None,) * 5
    assert dict(zip(HEADINGS, row(replace(SINK, fresh_within_s=2.0), 4000), strict=True))["FRESH"] == "2 s!"


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
    out.print(drawn(replace(STATE, restarts=2), Progress(1, home.RUNNING, (SINK, failed)), 4000, 120))
    title, headings, first, second, words = out.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert title == "orders  running  local, restarted 2×"
    assert headings.split() == " ".join(HEADINGS).split()
    assert first.split()[:5] == ["lake", "running", "1,234", "99", "2"]
    assert second.split()[:2] == ["other", "failed"]
    assert words == "other: disk [full]"


BUSY = (
    replace(SINK, watermark="", state_rows=0, late_rows=0, batch_ms=11_000, at_ms=987_000),
    replace(SINK, sink="minutes", state="finished", rows=1_234_567, lag=98_765),
    replace(
        SINK, sink="out", state="failed", error="topic 'orders' is gone. `penstock pipeline reset shop` forgets it"
    ),
)


def lines_at(width: int, sinks: tuple[SinkProgress, ...], state: State = STATE) -> list[str]:
    from rich.console import Console

    out = Console(file=io.StringIO(), width=width)
    out.print(drawn(state, Progress(1, home.RUNNING, sinks), 1_000_000, width))
    return list(out.file.getvalue().splitlines())  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [50, 60, 80, 100, 160])
def test_no_cell_is_cut_or_broken_however_narrow_the_terminal_is(width: int) -> None:
    lines = lines_at(width, BUSY)
    assert max(map(len, lines)) <= width - ECHO_CELLS
    assert not [line for line in lines if "…" in line]
    headings = [each for each in HEADINGS if f" {each} " in f" {lines[1]} "]
    assert {"SINK", "STATE", "ROWS/S", "LAG", "READ"} <= set(headings)
    for line, sink in zip(lines[2:5], BUSY, strict=True):
        told = {
            heading: "-" if cell is None else str(cell)
            for heading, cell in zip(HEADINGS, row(sink, 1_000_000), strict=True)
        }
        assert line.split() == " ".join(told[heading] for heading in headings).split()
    assert " ".join(lines[5:]).split() == f"out: {BUSY[2].error}".split()


def test_what_is_empty_goes_before_what_is_not() -> None:
    shown = [each for each in HEADINGS if f" {each} " in f" {lines_at(76, BUSY[:1])[1]} "]
    assert shown == [each for each in HEADINGS if each not in ("LATE", "STATE ROWS", "WATERMARK")]


def test_whoever_waits_for_a_start_sees_for_how_long() -> None:
    starting = replace(STATE, state=home.STARTING, since_ms=965_000)
    assert standing(starting, 1_000_000) == "starting for 35 s"
    assert standing(replace(STATE, since_ms=1), 1_000_000) == "running"
    assert lines_at(80, (), starting) == ["orders  starting for 35 s  local"]


def test_errors_that_were_shown_are_known() -> None:
    lines = Lines(io.StringIO())
    lines.show(STATE, Progress(1, home.RUNNING, BUSY))
    assert failures_of(lines.failed) == f"sink out: {BUSY[2].error}" == failures_of(BUSY)
    assert Silence().failed == ()
