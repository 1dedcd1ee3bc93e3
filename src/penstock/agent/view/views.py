"""The view that fits: a live table on a terminal, lines elsewhere, JSON lines for programs, or none."""

from __future__ import annotations

import json
import sys
import time
from typing import Final, Protocol, TextIO

from penstock.agent.admin.snapshot import Snapshot
from penstock.agent.view.numbers import megabytes, rate
from penstock.agent.view.rates import Rate, Rates
from penstock.agent.view.sentences import brokers_sentence, input_sentence, summary
from penstock.model.units import count

LINES_EVERY_S: Final = 5.0


class View(Protocol):
    """Shown again and again, `every_s` apart. Blocks as its stream does, so an agent calls it from a thread."""

    every_s: float

    def show(self, snapshot: Snapshot) -> None: ...

    def close(self, snapshot: Snapshot | None) -> None:
        """The last picture, and the terminal as it was."""


def view_for(style: str, *, quiet: bool) -> View:
    if style == "json":
        return JsonLines(sys.stdout)
    if quiet:
        return Silence()
    if sys.stderr.isatty():
        from penstock.agent.view.live import LiveTable

        return LiveTable()
    return Lines(sys.stderr)


class Silence:
    every_s = LINES_EVERY_S

    def show(self, snapshot: Snapshot) -> None:
        return

    def close(self, snapshot: Snapshot | None) -> None:
        return


class Lines:
    """A line for each input now and then while events flow, and one when brokers go or come."""

    every_s = LINES_EVERY_S

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._rates = Rates()
        self._brokers_up: bool | None = None
        self._told: dict[str, tuple[int, str]] = {}

    def show(self, snapshot: Snapshot) -> None:
        rates = self._rates.feed(snapshot.inputs, time.monotonic())
        if snapshot.brokers_up != self._brokers_up:
            self._brokers_up = snapshot.brokers_up
            self._say(brokers_sentence(snapshot))
        for name, each in snapshot.inputs.items():
            news = (each.events + each.dropped + each.refused + each.errors, each.words)
            if self._told.get(name) != news:
                self._told[name] = news
                self._say(input_sentence(name, each, rates[name]))

    def close(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self._say(summary(snapshot))

    def _say(self, words: str) -> None:
        print(words, file=self._out, flush=True)


class JsonLines:
    """One object a look."""

    every_s = LINES_EVERY_S

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._rates = Rates()

    def show(self, snapshot: Snapshot) -> None:
        rates = self._rates.feed(snapshot.inputs, time.monotonic())
        data = snapshot.data()
        for name, each in data["inputs"].items():
            found = rates.get(name, Rate())
            each["events_per_s"], each["bytes_per_s"] = round(found.events_per_s, 1), round(found.bytes_per_s)
        print(json.dumps({"at_ms": time.time_ns() // 1_000_000, **data}), file=self._out, flush=True)

    def close(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self.show(snapshot)


def short(snapshot: Snapshot, rates: dict[str, Rate]) -> str:
    """The whole agent in a few words: what `systemctl status` shows."""
    events = sum(each.events_per_s for each in rates.values())
    size = sum(each.bytes_per_s for each in rates.values())
    brokers = "" if snapshot.brokers_up else ", no broker answers"
    return f"{count('event', snapshot.events, grouped=True)}, {rate(events)} events/s, {megabytes(size)} MB/s{brokers}"
