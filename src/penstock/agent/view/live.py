"""The live table, drawn in place on standard error, which leaves standard output to data."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.agent.admin.snapshot import RUNNING, InputSnapshot, Snapshot
from penstock.agent.admin.verdicts import memory_full, readiness, spool_full
from penstock.agent.view.numbers import bar, megabytes, rate, trend
from penstock.agent.view.rates import TREND_POINTS, Rate, Rates
from penstock.agent.view.sentences import source, summary, words_of
from penstock.model.units import bytes_text, duration_text

WIDE: Final = 110
"""Columns of a terminal that has room for everything."""
TREND_POINTS_NARROW: Final = 8
EVERY_S: Final = 0.5
BAR_WIDTH: Final = 20
WORDS_MAX: Final = 6


class LiveTable:
    """Log lines that are written to standard error meanwhile appear above it."""

    every_s = EVERY_S

    def __init__(self) -> None:
        self._live = Live(console=Console(stderr=True), auto_refresh=False, redirect_stdout=False)
        self._live.start()
        self._rates = Rates()

    def show(self, snapshot: Snapshot) -> None:
        rates = self._rates.feed(snapshot.inputs, time.monotonic())
        self._live.update(drawn(snapshot, rates, self._live.console.width), refresh=True)

    def close(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self.show(snapshot)
        self._live.stop()
        if snapshot is not None:
            self._live.console.print(summary(snapshot), highlight=False, markup=False)


def drawn(snapshot: Snapshot, rates: Mapping[str, Rate], width: int = WIDE) -> Group:
    """The agent's own line, a table of its inputs, bars of its buffers, and below them what is to be said."""
    points = TREND_POINTS if width >= WIDE else TREND_POINTS_NARROW
    reasons = [Text(f"! {reason}", "red") for reason in readiness(snapshot) if snapshot.state == RUNNING]
    words = [Text(f"  {line}", "dim") for line in words_of(snapshot)[:WORDS_MAX]]
    return Group(
        _title(snapshot), Text(""), _table(snapshot, rates, points), Text(""), _bars(snapshot), *reasons, *words
    )


def _title(snapshot: Snapshot) -> Text:
    colour = "green" if snapshot.state == RUNNING else "yellow"
    brokers = (f"● {snapshot.bootstrap}", "green") if snapshot.brokers_up else (f"○ {snapshot.bootstrap}", "red")
    admin = f"   http://{snapshot.admin}" if snapshot.admin else ""
    state = f"{snapshot.state} {duration_text(snapshot.up_s * 1000)}"
    return Text.assemble((snapshot.name, "bold"), "  ", (state, colour), "   ", brokers, (admin, "dim"))


def _table(snapshot: Snapshot, rates: Mapping[str, Rate], points: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("INPUT", "TYPE"):
        table.add_column(heading, no_wrap=True)
    table.add_column("EVENTS/S", justify="right")
    table.add_column("")
    for heading in ("MB/S", "EVENTS", "BEHIND"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("FROM", ""):
        table.add_column(heading)
    for name, each in snapshot.inputs.items():
        now = rates.get(name, Rate())
        table.add_row(
            Text(name, "red" if each.failing else "cyan"),
            each.kind,
            rate(now.events_per_s),
            Text(trend(now.trend[-points:]), "blue"),
            megabytes(now.bytes_per_s),
            f"{each.events:,}",
            bytes_text(each.behind_bytes) if each.files or each.behind_bytes else "-",
            source(each) or "-",
            _troubles(each),
        )
    return table


def _troubles(each: InputSnapshot) -> Text:
    """Counted losses in red, what was decided so in yellow, the rest in plain."""
    counted = (
        ("dropped", each.dropped, "red"),
        ("unsendable", each.unsendable, "red"),
        ("refused", each.refused, "yellow"),
        ("failed", each.failed, "yellow"),
        ("malformed", each.malformed, "yellow"),
        ("truncated", each.truncated, "yellow"),
        ("dead letters", each.dead, "yellow"),
        ("untimed", each.untimed, "yellow"),
        ("filtered", each.filtered, "dim"),
    )
    text = Text()
    for word, number, colour in counted:
        if number:
            text.append(f"{number:,} {word}  ", colour)
    return text


def _bars(snapshot: Snapshot) -> Text:
    text = _bar("memory", snapshot.memory_bytes, snapshot.memory_limit_bytes, full=memory_full(snapshot))
    if snapshot.spool_limit_bytes:
        text.append("    ")
        text.append_text(_bar("spool", snapshot.spool_bytes, snapshot.spool_limit_bytes, full=spool_full(snapshot)))
    return text


def _bar(name: str, part: int, whole: int, *, full: bool) -> Text:
    filled, empty = bar(part, whole, BAR_WIDTH)
    share = part / whole if whole else 0.0
    colour = "red" if full else "yellow" if share > 0.7 else "green"
    return Text.assemble(f"{name} ", (filled, colour), (empty, "grey23"), f" {bytes_text(part)} of {bytes_text(whole)}")
