"""Courses over time as hand-made SVG: panels one above the other that share the axis of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

INK, RULE, PALE, BAND = "#222222", "#999999", "#e6e6e6", "#f6efe2"
COLOURS = ("#2f6fa3", "#2f7d5b", "#b3553a", "#7a5aa6")
LEFT, RIGHT, TOP, PANEL, GAP, WIDTH = 70, 190, 46, 170, 44, 720


@dataclass(frozen=True)
class Line:
    label: str
    points: Sequence[tuple[float, float]]
    """Seconds, value."""
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    title: str
    lines: Sequence[Line]


@dataclass(frozen=True)
class Chart:
    """`bands` are spans of time with a name: (from, to, name)."""

    title: str
    panels: Sequence[Panel]
    bands: Sequence[tuple[float, float, str]] = field(default=())

    def svg(self) -> str:
        end_s = max((x for panel in self.panels for line in panel.lines for x, _ in line.points), default=1.0) or 1.0
        height = TOP + len(self.panels) * (PANEL + GAP) + 10
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{height}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{LEFT + WIDTH + RIGHT}" height="{height}" fill="#ffffff"/>',
            f'<text x="16" y="20" font-weight="bold" fill="{INK}">{escape(self.title)}</text>',
        ]
        for index, panel in enumerate(self.panels):
            out += self._panel(panel, TOP + index * (PANEL + GAP), end_s, last=index == len(self.panels) - 1)
        return "\n".join([*out, "</svg>"]) + "\n"

    def _panel(self, panel: Panel, top: float, end_s: float, *, last: bool) -> list[str]:
        highest = max((y for line in panel.lines for _, y in line.points), default=1.0)
        step = _step(highest)
        reach = step * max(1, math.ceil(highest / step))
        bottom = top + PANEL

        def x(at_s: float) -> float:
            return LEFT + at_s / end_s * WIDTH

        def y(value: float) -> float:
            return bottom - value / reach * PANEL

        out = []
        for start_s, stop_s, name in self.bands:
            out.append(
                f'<rect x="{x(start_s):.1f}" y="{top}" width="{x(stop_s) - x(start_s):.1f}" height="{PANEL}" '
                f'fill="{BAND}"/><text x="{x(start_s) + 4:.1f}" y="{top + 13}" fill="{RULE}">{escape(name)}</text>'
            )
        for number in range(round(reach / step) + 1):
            at = y(number * step)
            out.append(
                f'<line x1="{LEFT}" y1="{at:.1f}" x2="{LEFT + WIDTH}" y2="{at:.1f}" stroke="{PALE}"/>'
                f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end" fill="{INK}">{_short(number * step)}</text>'
            )
        out.append(f'<text x="{LEFT}" y="{top - 6}" fill="{INK}">{escape(panel.title)}</text>')
        every_s = _step(end_s)
        for number in range(int(end_s / every_s) + 1):
            unit = " s" if last and number else ""
            out.append(
                f'<text x="{x(number * every_s):.1f}" y="{bottom + 16}" text-anchor="middle" fill="{INK}">'
                f"{_short(number * every_s)}{unit}</text>"
            )
        for index, line in enumerate(panel.lines):
            colour = COLOURS[index % len(COLOURS)]
            path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in _thinned(line.points))
            dashes = ' stroke-dasharray="5 4"' if line.dashed else ""
            at = top + 12 + 18 * index
            out += [
                f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>',
                f'<line x1="{LEFT + WIDTH + 12}" y1="{at - 4}" x2="{LEFT + WIDTH + 34}" y2="{at - 4}" '
                f'stroke="{colour}" stroke-width="2.5"{dashes}/>',
                f'<text x="{LEFT + WIDTH + 40}" y="{at}" fill="{INK}">{escape(line.label)}</text>',
            ]
        return out


def _step(highest: float) -> float:
    """1, 2 or 5 of some power of ten, so that there are four to nine of them."""
    if highest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest / 4))
    return next(each * power for each in (1, 2, 5, 10) if highest / (each * power) <= 9)


def _short(value: float) -> str:
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def _thinned(points: Sequence[tuple[float, float]], most: int = 700) -> Sequence[tuple[float, float]]:
    every = max(1, len(points) // most)
    return [*points[::every], *points[-1:]]
