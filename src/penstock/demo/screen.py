"""The demo on a terminal: one picture, drawn over itself. `drawn` is pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from penstock.demo.plan import AGENT, LETTERS, PARTITIONS, TABLE, TOPIC
from penstock.demo.sight import KILLED, UP, Event, Sight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import OverflowMethod

WIDTH_MOST: Final = 110
BAR_CELLS: Final = 34
BESIDE_BAR_CELLS: Final = 76
"""What a line of the flow needs besides its bar."""
EVENTS_LEAST, EVENTS_MOST = 3, 9
BESIDE_EVENTS_LINES: Final = 17
"""What the picture needs besides its events, with a line for the cursor."""
HEIGHT_MOST: Final = 100
STYLES: Final = {"step": "cyan", "crash": "bold red", "good": "green"}
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_FRESH_S: Final = 10.0


class ScreenShow:
    """Drawn in place; what it leaves behind is what happened, line by line."""

    def __init__(self, console: Console, total: int) -> None:
        self._console, self._total = console, total
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._events: list[Event] = []

    def start(self) -> None:
        self._live.start()

    def tell(self, event: Event) -> None:
        self._events.append(event)

    def draw(self, sight: Sight) -> None:
        width, height = self._console.size
        self._live.update(drawn(sight, self._total, width, height), refresh=True)

    def close(self) -> None:
        """The picture goes; the story stays."""
        # Live draws its picture a last time, as high as it is: one that is higher than the terminal could not be taken
        # away again.
        self._live.update(Text(), refresh=True)
        self._live.stop()
        for event in self._events:
            self._console.print(told(event, whole=True), highlight=False)


def told(event: Event, *, whole: bool = False) -> Text:
    """When, and what: in one line that may be cut, or in as many as it takes if `whole`."""
    mark = {"crash": "✖", "good": "✔"}.get(event.kind, "•")
    time = (f"  {clock(event.at_s)}  ", "dim")
    overflow: OverflowMethod = "fold" if whole else "ellipsis"
    return Text.assemble(time, (f"{mark} ", STYLES[event.kind]), event.words, no_wrap=not whole, overflow=overflow)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def drawn(sight: Sight, total: int, width: int, height: int = HEIGHT_MOST) -> RenderableType:
    """The whole picture. `total` is how many lines are expected: bars are full then. Low terminals see fewer events."""
    shown = max(EVENTS_LEAST, min(EVENTS_MOST, height - BESIDE_EVENTS_LINES))
    kind = sight.events[-1].kind if sight.events else "step"
    style = STYLES[kind] if sight.events and sight.now == sight.events[-1].words else "cyan"
    now = Text.assemble(("NOW  ", "bold"), (sight.now, style), no_wrap=True, overflow="ellipsis")
    parts: list[RenderableType] = [now, Text(), _flow(sight, total, width), Text(), _cluster(sight)]
    if sight.events:
        parts += [Rule(style="dim"), *(told(event) for event in sight.events[-shown:])]
    title = "[bold]Penstock[/bold] · a day of a web shop in a minute, with three crashes"
    return Panel(
        Group(*parts),
        title=title,
        title_align="left",
        subtitle=clock(sight.elapsed_s),
        subtitle_align="right",
        width=min(width, WIDTH_MOST),
        border_style="blue",
    )


def _flow(sight: Sight, total: int, width: int) -> Table:
    """From the file to the table: how much is there, how fast, and what hangs behind."""
    cells = max(6, min(BAR_CELLS, width - BESIDE_BAR_CELLS))
    grid = Table.grid(padding=(0, 2))
    for justify in ("left", "left", "right", "right", "left"):
        grid.add_column(justify=justify, no_wrap=True)
    for name, count, rate, style, note in _stations(sight):
        speed = f"{rate:,.0f}/s" if rate else ""
        grid.add_row(Text(name, "bold"), Text(bar(count, total, cells), style), f"{count:,}", speed, note)
    return grid


def _stations(sight: Sight) -> Iterator[tuple[str, int, float, str, Text]]:
    log, agent, pipeline, table = sight.log, sight.agent, sight.pipeline, sight.table
    rotated = f", rotated {log.rotations}×" if log.rotations else ""
    # The writer counts now and then, the agent at once: what was sent was written.
    yield "log", max(log.lines, agent.sent), log.rate.per_s, "blue", Text(f"access.log {log.clock}{rotated}")
    behind = f"{size(agent.behind_bytes)} behind" if agent.state == UP else agent.state
    yield "agent", agent.sent, agent.rate.per_s, "cyan", Text(f"{AGENT}: {behind}")
    up = pipeline.state == "running"
    lag = Text(f"lag {sight.behind_records:,}, " if sight.partitions else "")
    lag.append(pipeline.state, "green" if up else "yellow")
    lag.append(f", started anew {pipeline.restarts}×" if pipeline.restarts else "")
    yield "topic", sight.records, 0.0, "magenta", Text(f"{TOPIC}: {PARTITIONS} partitions")
    yield "pipeline", table.rows + table.dead, 0.0, "yellow", lag
    fresh = sight.stale_s
    note = Text(f"lake/{TABLE}: {table.commits} commit{'' if table.commits == 1 else 's'}, ")
    note.append("-" if fresh is None else f"{fresh:.0f} s behind", "green" if (fresh or 0) < _FRESH_S else "yellow")
    yield "table", table.rows, table.rate.per_s, "green", note
    yield "letters", table.dead, 0.0, "red", Text(f"{LETTERS}: lines broken on purpose")


def _cluster(sight: Sight) -> Table:
    """Nodes in columns: who leads what, and who has it."""
    grid = Table.grid(padding=(0, 3))
    heads = [Text("cluster", "bold")]
    for node, state in sight.nodes.items():
        colour = {UP: "green", KILLED: "bold red"}.get(state, "yellow")
        heads.append(
            Text.assemble(
                f"node {node} ", ("● " if state == UP else "✖ " if state == KILLED else "◌ ", colour), (state, colour)
            )
        )
    grid.add_row(*heads)
    for each in sight.partitions:
        cells = [Text(f"{TOPIC}-{each.partition}")]
        for node in sight.nodes:
            if each.leader == node:
                cells.append(Text("leads", "bold"))
            elif node in each.in_sync:
                cells.append(Text("in sync", "dim"))
            else:
                cells.append(Text("behind" if sight.nodes[node] == UP else "away", "yellow"))
        grid.add_row(*cells)
    return grid


def bar(value: float, most: float, cells: int = BAR_CELLS) -> str:
    """A bar of eighths of a cell, padded to its whole length."""
    eighths = round(8 * cells * min(1.0, max(0.0, value / most))) if most else 0
    whole, part = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[part] if part else "")).ljust(cells)


def size(count: float) -> str:
    """Bytes in words."""
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
