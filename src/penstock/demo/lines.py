"""The demo where there is no terminal: a line for what happens, and one for how it stands now and then."""

from __future__ import annotations

from typing import Final, Protocol

from rich.console import Console

from penstock.demo.screen import ScreenShow, clock, told
from penstock.demo.sight import Event, Sight

EVERY_S: Final = 10.0


class Show(Protocol):
    """What people see while it runs."""

    def start(self) -> None: ...

    def tell(self, event: Event) -> None: ...

    def draw(self, sight: Sight) -> None: ...

    def close(self) -> None: ...


class LineShow:
    """Everything is printed once and stays."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last_s = 0.0

    def start(self) -> None:
        return

    def tell(self, event: Event) -> None:
        self._console.print(told(event), highlight=False, soft_wrap=True)

    def draw(self, sight: Sight) -> None:
        if sight.elapsed_s - self._last_s < EVERY_S or not sight.log.lines:
            return
        self._last_s = sight.elapsed_s
        self._console.print(standing(sight), highlight=False, soft_wrap=True, style="dim")

    def close(self) -> None:
        return


def standing(sight: Sight) -> str:
    """How far everything is, in one line."""
    fresh = sight.stale_s
    return (
        f"  {clock(sight.elapsed_s)}    {sight.log.lines:,} lines written, {sight.records:,} in the topic, "
        f"{sight.table.rows:,} in the table, {sight.table.dead:,} dead letters"
        + ("" if fresh is None else f", {fresh:.0f} s behind")
    )


def show_for(console: Console, total: int) -> Show:
    return ScreenShow(console, total) if console.is_terminal and not console.is_dumb_terminal else LineShow(console)
