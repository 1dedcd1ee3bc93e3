"""What people see of a running pipeline: a live table on a terminal, lines elsewhere, JSON for programs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

from penstock.model.units import count
from penstock.spark.pipeline import home
from penstock.spark.pipeline.home import Progress, SinkProgress, State

if TYPE_CHECKING:
    from rich.constrain import Constrain

HEADINGS: Final = (
    "SINK", "STATE", "ROWS/S", "LAG", "FRESH", "BATCH", "TOOK", "READ", "WATERMARK", "LATE", "STATE ROWS", "LAST",
)  # fmt: skip
GIVEN_UP: Final = ("LAST", "TOOK", "STATE ROWS", "LATE", "BATCH", "FRESH", "WATERMARK")
"""Columns that a terminal without room for all does without, in this order, after those that are empty."""
ECHO_CELLS: Final = 4
"""Kept free at the end of lines: a terminal writes ^C there, and a line that it broke could not be drawn over."""
LINES_EVERY_S: Final = 5.0
STARTING_EVERY_S: Final = 15.0
LIVE_EVERY_S: Final = 0.25
_NEVER: Final = "1970-01-01"
_BETWEEN: Final = 2
"""Cells between two columns."""


class View(Protocol):
    """Shown at every look; `close` leaves the terminal as it was. `failed` are sinks whose errors people have seen."""

    @property
    def failed(self) -> tuple[SinkProgress, ...]: ...

    def show(self, state: State, progress: Progress | None) -> None: ...

    def close(self) -> None: ...


def view_for(style: str, *, quiet: bool, has_console: bool) -> View:
    """Rows of console sinks go to the same terminal: a table that is drawn over itself would tear them apart."""
    if style == "json":
        return JsonLines(sys.stdout)
    if quiet:
        return Silence()
    if sys.stderr.isatty() and not has_console:
        try:
            return LiveTable()
        except ImportError:
            pass
    return Lines(sys.stderr)


class Silence:
    failed: tuple[SinkProgress, ...] = ()

    def show(self, state: State, progress: Progress | None) -> None:
        return

    def close(self) -> None:
        return


class Lines:
    """A line when something changes, and one for each sink now and then while rows flow."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._state = ""
        self._sinks: dict[str, tuple[str, int]] = {}
        self._last_s = 0.0
        self._starting_ms = 0
        self.failed: tuple[SinkProgress, ...] = ()

    def show(self, state: State, progress: Progress | None) -> None:
        if state.state != self._state:
            self._state, self._starting_ms = state.state, _now_ms()
            words = f": {state.words}" if state.words and state.state == home.RESTARTING else ""
            self._say(f"{state.name} is {state.state}{words}")
        elif state.state == home.STARTING and _now_ms() - self._starting_ms >= STARTING_EVERY_S * 1000:
            self._starting_ms = _now_ms()
            self._say(f"{state.name} is still {standing(state, _now_ms())}")
        if progress is None:
            return
        self.failed = _failed(progress)
        due = time.monotonic() - self._last_s >= LINES_EVERY_S
        if due:
            self._last_s = time.monotonic()
        for sink in progress.sinks:
            before = self._sinks.get(sink.sink)
            changed = before is None or before[0] != sink.state
            moved = before is not None and before[1] != sink.batch_id
            if changed or (moved and due):
                self._sinks[sink.sink] = (sink.state, sink.batch_id)
                self._say(f"  {sentence(sink)}")

    def close(self) -> None:
        return

    def _say(self, words: str) -> None:
        print(words, file=self._out, flush=True)


class JsonLines:
    """One object a snapshot, when there is a new one."""

    failed: tuple[SinkProgress, ...] = ()

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown: tuple[str, int] = ("", -1)

    def show(self, state: State, progress: Progress | None) -> None:
        at_ms = -1 if progress is None else progress.at_ms
        if (state.state, at_ms) == self._shown:
            return
        self._shown = (state.state, at_ms)
        print(json.dumps(snapshot(state, progress)), file=self._out, flush=True)

    def close(self) -> None:
        return


class LiveTable:
    """Drawn in place on standard error, which leaves standard output to data."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False)
        self._live.start()
        self._last_s = 0.0
        self._newest: tuple[State, Progress | None] | None = None

    @property
    def failed(self) -> tuple[SinkProgress, ...]:
        progress = None if self._newest is None else self._newest[1]
        return () if progress is None else _failed(progress)

    def show(self, state: State, progress: Progress | None) -> None:
        if progress is not None or self._newest is None or self._newest[0].state != state.state:
            self._newest = (state, progress)
        if time.monotonic() - self._last_s >= LIVE_EVERY_S:
            self._last_s = time.monotonic()
            self._draw()

    def close(self) -> None:
        self._draw()
        self._live.stop()

    def _draw(self) -> None:
        if self._newest is not None:
            self._live.update(drawn(*self._newest, _now_ms(), self._console.width), refresh=True)


def drawn(state: State, progress: Progress | None, now_ms: int, width: int) -> Constrain:
    """The pipeline's own line, a table of its sinks, and below it why some of them do not run."""
    from rich.console import Group
    from rich.constrain import Constrain
    from rich.table import Table as RichTable
    from rich.text import Text

    room = max(1, width - ECHO_CELLS)
    again = f", restarted {state.restarts}×" if state.restarts else ""
    told = standing(state, now_ms)
    title = Text.assemble(state.name, "  ", (told, _colour(state.state)), f"  {state.master}{again}")
    sinks = () if progress is None else progress.sinks
    if not sinks:
        return Constrain(Group(title), room)
    cells = [["-" if cell is None else str(cell) for cell in each] for each in rows(sinks, now_ms)]
    shown = columns_that_fit(cells, room)
    table = RichTable(box=None, pad_edge=False)
    for index in shown:
        left = HEADINGS[index] in ("SINK", "STATE", "WATERMARK")
        table.add_column(HEADINGS[index], justify="left" if left else "right", no_wrap=HEADINGS[index] != "SINK")
    for each in cells:
        table.add_row(*(Text(each[i], _colour(each[i]) if HEADINGS[i] == "STATE" else "") for i in shown))
    words = [Text(f"{sink.sink}: {sink.error}", "red") for sink in sinks if sink.error]
    return Constrain(Group(title, table, *words), room)


def columns_that_fit(cells: Sequence[Sequence[str]], room: int) -> list[int]:
    """The columns, by their places in HEADINGS, that `room` has a place for; the most needed stay in any case. Pure."""
    widths = [max(map(len, column)) for column in zip(HEADINGS, *cells, strict=True)]
    empty = [heading for i, heading in enumerate(HEADINGS) if all(row[i] == "-" for row in cells)]
    leaving = [*(each for each in GIVEN_UP if each in empty), *(each for each in GIVEN_UP if each not in empty)]
    shown = list(range(len(HEADINGS)))
    while leaving and sum(widths[i] for i in shown) + _BETWEEN * (len(shown) - 1) > room:
        shown.remove(HEADINGS.index(leaving.pop(0)))
    return shown


def standing(state: State, now_ms: int) -> str:
    """What a pipeline does; for how long, where somebody waits for it to be over."""
    waited = state.state in (home.STARTING, home.STOPPING) and state.since_ms
    return f"{state.state} for {max(0, now_ms - state.since_ms) // 1000} s" if waited else state.state


def _failed(progress: Progress) -> tuple[SinkProgress, ...]:
    return tuple(sink for sink in progress.sinks if sink.state == home.FAILED)


def _colour(state: str) -> str:
    return {"running": "green", "failed": "red", "retrying": "yellow", "restarting": "yellow"}.get(state, "cyan")


def row(sink: SinkProgress, now_ms: int) -> tuple[Any, ...]:
    """One line of the table, in the order of HEADINGS."""
    begun = sink.begun
    return (
        sink.sink,
        sink.state,
        f"{sink.rows_per_s:,.0f}" if begun else None,
        f"{sink.lag:,}" if begun else None,
        fresh_words(sink, now_ms),
        sink.batch_id if begun else None,
        f"{sink.batch_ms / 1000:.2f} s" if begun else None,
        f"{sink.rows:,}",
        _watermark(sink.watermark),
        f"{sink.late_rows:,}" if sink.late_rows else None,
        f"{sink.state_rows:,}" if sink.state_rows else None,
        _ago(now_ms - sink.at_ms) if sink.at_ms else None,
    )


def fresh_words(sink: SinkProgress, now_ms: int) -> str | None:
    """How old the oldest record is that waits; with a mark where that is older than the file promises."""
    fresh_s = sink.fresh_s(now_ms)
    if fresh_s is None:
        return None
    mark = "!" if sink.fresh_within_s and fresh_s > sink.fresh_within_s else ""
    return f"{fresh_s:,.0f} s{mark}"


def rows(sinks: Sequence[SinkProgress], now_ms: int) -> list[tuple[Any, ...]]:
    return [row(sink, now_ms) for sink in sinks]


def sentence(sink: SinkProgress) -> str:
    """One sink in one line."""
    target = f" → {sink.kind} {sink.target}" if sink.target else f" → {sink.kind}"
    if sink.error:
        return f"{sink.sink}{target}: {sink.state}: {sink.error}"
    if not sink.begun:
        return f"{sink.sink}{target}: {sink.state}"
    mark = _watermark(sink.watermark)
    extra = f", watermark {mark}" if mark else ""
    extra += f", {count('row', sink.state_rows, grouped=True)} of state" if sink.state_rows else ""
    extra += f", {count('row', sink.late_rows, grouped=True)} came too late" if sink.late_rows else ""
    return (
        f"{sink.sink}{target}: {sink.state}, batch {sink.batch_id} took {sink.batch_ms / 1000:.2f} s, "
        f"{sink.rows_per_s:,.0f} rows/s, {count('row', sink.rows, grouped=True)} read so far, lag {sink.lag:,}{extra}"
    )


def snapshot(state: State, progress: Progress | None) -> dict[str, Any]:
    """For programs."""
    return {
        **asdict(state),
        "at_ms": None if progress is None else progress.at_ms,
        "sinks": [] if progress is None else [asdict(sink) for sink in progress.sinks],
    }


def _watermark(text: str) -> str | None:
    """Spark says 1970 as long as it has none."""
    return None if not text or text.startswith(_NEVER) else text.removesuffix(".000Z").replace("T", " ")


def _ago(ms: int) -> str:
    seconds = max(0, ms // 1000)
    if seconds < 100:
        return f"{seconds} s ago"
    return f"{seconds // 60} min ago" if seconds < 6000 else f"{seconds // 3600} h ago"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
