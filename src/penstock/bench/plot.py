"""Charts as hand-made SVG: bars of ratios with a line where both are level, and lines over an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

from penstock.bench.series import Series, readable

ROW, BAR_WIDTH, MARGIN, LETTER_WIDTH = 22, 420, 16, 7.2
AHEAD, BEHIND, INK, RULE, PALE = "#2f7d5b", "#b3553a", "#222222", "#999999", "#e6e6e6"
COLOURS = ("#2f7d5b", "#b3553a", "#2f6fa3", "#7a5aa6", "#b08a1e", "#4d4d4d")
DASHES = ("", "7 4", "2 3")

WIDTH, LEFT, RIGHT, TOP, PLOT_HEIGHT, BELOW = 800, 78, 24, 40, 300, 52
POINTS_MAX = 700
LOG_TICKS_MAX = 12
"""So many labels stand well apart on the shorter axis, which has 300 pixels."""


def ratio_chart(
    series: Sequence[Series], title: str, names: Mapping[str, str] | None = None, *, with_values: bool = False
) -> str:
    """Bars on a logarithmic scale, so that twice as good and half as good are equally far from the line.

    A figure is called by its group and name, or as `names` says for `group: name`. With values each bar says what was
    measured of ours and of the rival.
    """
    rows = [(each, ratio) for each in series if (ratio := each.ratio()) is not None]
    low, high = (pick([bound, *(ratio for _, ratio in rows)]) for pick, bound in ((min, 1.0), (max, 2.0)))
    figures = [f"{each.group}: {each.name}" for each, _ in rows]
    labels = [(names or {}).get(figure, figure) for figure in figures]
    # Nobody measures the reader's font; this is wide for any of the usual ones.
    label_width = round(max(map(len, labels), default=0) * LETTER_WIDTH) + 8
    height = MARGIN * 2 + ROW * (len(rows) + 1)
    results = [_result(each, ratio, with_values) for each, ratio in rows]
    result_width = max(60, round(max(map(len, results), default=0) * LETTER_WIDTH)) if with_values else 60
    width = MARGIN * 2 + label_width + BAR_WIDTH + result_width
    x = _scale(low, high, MARGIN + label_width, MARGIN + label_width + BAR_WIDTH, logarithmic=True)
    middle = x(1.0)
    out = [
        *_ground(width, height, title),
        f'<line x1="{middle:.1f}" y1="{MARGIN + 12}" x2="{middle:.1f}" y2="{height - MARGIN}" stroke="{RULE}"/>',
    ]
    for index, ((_, ratio), label, result) in enumerate(zip(rows, labels, results, strict=True), start=1):
        top = MARGIN + ROW * index
        left, right = sorted((middle, x(ratio)))
        out += [
            _text(MARGIN + label_width - 8, top + 12, label, anchor="end"),
            f'<rect x="{left:.1f}" y="{top}" width="{max(right - left, 1):.1f}" height="{ROW - 6}" '
            f'fill="{AHEAD if ratio >= 1 else BEHIND}"/>',
            _text(MARGIN + label_width + BAR_WIDTH + 8, top + 12, result),
        ]
    return "\n".join([*out, "</svg>"]) + "\n"


def _result(series: Series, ratio: float, with_values: bool) -> str:
    times = f"{ratio:.2f}×"
    if not with_values:
        return times
    assert series.rival is not None, "there is no ratio without a rival"
    ours, theirs = readable(series.median(series.ours)), readable(series.median(series.rival))
    return f"{times}: {ours} beside {theirs} {series.unit}"


def line_chart(
    title: str,
    lines: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    from_zero: bool = True,
) -> str:
    """Lines of (x, y) points with a legend, 800 pixels wide.

    On a logarithmic axis points at or below zero have no place and are left out. `from_zero` is about the linear
    y axis: without it the axis begins near the smallest value.
    """
    kept = {
        name: [(x, y) for x, y in points if (x > 0 or not log_x) and (y > 0 or not log_y)]
        for name, points in lines.items()
    }
    xs = [x for points in kept.values() for x, _ in points] or [1.0, 10.0]
    ys = [y for points in kept.values() for _, y in points] or [1.0, 10.0]
    x_ticks = log_ticks(min(xs), max(xs)) if log_x else _ticks(min(xs), max(xs), outwards=False)
    y_ticks = log_ticks(min(ys), max(ys)) if log_y else _ticks(min(0.0, *ys) if from_zero else min(ys), max(ys))
    legend_rows = _legend_rows(list(lines))
    top = TOP + 18 * len(legend_rows)
    height = top + PLOT_HEIGHT + BELOW
    bottom, right = top + PLOT_HEIGHT, WIDTH - RIGHT
    x_ends = (x_ticks[0], x_ticks[-1]) if log_x else (min(xs), max(xs))
    x = _scale(*x_ends, LEFT, right, logarithmic=log_x)
    y = _scale(y_ticks[0], y_ticks[-1], bottom, top, logarithmic=log_y)
    out = _ground(WIDTH, height, title)
    for tick in y_ticks:
        out.append(f'<line x1="{LEFT}" y1="{y(tick):.1f}" x2="{right}" y2="{y(tick):.1f}" stroke="{PALE}"/>')
        out.append(_text(LEFT - 6, y(tick) + 4, short(tick), anchor="end"))
    for tick in x_ticks:
        out.append(f'<line x1="{x(tick):.1f}" y1="{bottom}" x2="{x(tick):.1f}" y2="{bottom + 5}" stroke="{RULE}"/>')
        out.append(_text(x(tick), bottom + 18, short(tick), anchor="middle"))
    out.append(f'<line x1="{LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}" stroke="{RULE}"/>')
    out.append(_text((LEFT + right) / 2, bottom + 40, x_label, anchor="middle"))
    middle = (top + bottom) / 2
    # Whoever takes a logarithmic axis for a linear one reads differences far too small.
    y_words = f"{y_label}, logarithmic" if log_y else y_label
    out.append(f'<g transform="rotate(-90 18 {middle})">{_text(18, middle, y_words, anchor="middle")}</g>')
    looks = dict(zip(lines, line_looks(list(lines)), strict=True))
    for row, names in enumerate(legend_rows):
        at = LEFT
        for name in names:
            out.append(_stroke(looks[name], f"{at},{TOP + 18 * row - 4} {at + 24},{TOP + 18 * row - 4}"))
            out.append(_text(at + 30, TOP + 18 * row, name))
            at += 54 + round(len(name) * LETTER_WIDTH)
    for name, points in kept.items():
        if points:
            path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in _thinned(points))
            out.append(_stroke(looks[name], path))
            if len(points) <= 30:
                colour, _ = looks[name]
                out += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="2.6" fill="{colour}"/>' for a, b in points]
    return "\n".join([*out, "</svg>"]) + "\n"


def short(value: float) -> str:
    """A tick's number: thousands as k, millions as M, no digits that say nothing."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.4g}{name}"
    return f"{value:.4g}"


def _ground(width: int, height: int, title: str) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="{MARGIN + 4}" font-weight="bold" fill="{INK}">{escape(title)}</text>',
    ]


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{INK}">{escape(text)}</text>'


def line_looks(names: Sequence[str]) -> list[tuple[str, str]]:
    """Colour and dashes of each line: of "who, what" the colour says who and the dashes what.

    Where names are of another form, or there are more of either than can be told apart, each line has the next colour;
    when colours repeat, dashes tell lines apart.
    """
    parted = [name.partition(", ") for name in names]
    who = list(dict.fromkeys(each for each, _, _ in parted))
    what = list(dict.fromkeys(each for _, _, each in parted))
    if all(what) and 1 < len(who) <= len(COLOURS) and len(what) <= len(DASHES):
        return [(COLOURS[who.index(one)], DASHES[what.index(other)]) for one, _, other in parted]
    return [(COLOURS[at % len(COLOURS)], DASHES[at // len(COLOURS) % len(DASHES)]) for at in range(len(names))]


def _stroke(look: tuple[str, str], path: str) -> str:
    colour, dashes = look
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashed}/>'


def _legend_rows(names: Sequence[str]) -> list[list[str]]:
    rows: list[list[str]] = [[]]
    taken = 0
    for name in names:
        needed = 54 + round(len(name) * LETTER_WIDTH)
        if rows[-1] and taken + needed > WIDTH - LEFT - RIGHT:
            rows.append([])
            taken = 0
        rows[-1].append(name)
        taken += needed
    return rows


def _scale(low: float, high: float, at_low: float, at_high: float, *, logarithmic: bool) -> Callable[[float], float]:
    if logarithmic:
        low, high = math.log10(low), math.log10(high)
    span = (high - low) or 1.0

    def place(value: float) -> float:
        position = math.log10(value) if logarithmic else value
        return at_low + (position - low) / span * (at_high - at_low)

    return place


def _ticks(low: float, high: float, *, outwards: bool = True) -> list[float]:
    """Round numbers, four to nine steps; with `outwards` the first and last enclose all values."""
    if high <= low:
        high = low + (abs(low) or 1.0)
    power = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(each * power for each in (1, 2, 2.5, 5, 10, 20) if (high - low) / (each * power) <= 8)
    first, last = low / step, high / step
    numbers = (
        range(math.floor(first), math.ceil(last) + 1) if outwards else range(math.ceil(first), math.floor(last) + 1)
    )
    return [round(number * step, 12) for number in numbers]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten, or powers alone where those are too many; the outermost enclose all values."""
    fine = _enclosing(low, high, (1, 2, 5))
    return fine if len(fine) <= LOG_TICKS_MAX else _enclosing(low, high, (1,))


def _enclosing(low: float, high: float, steps: Sequence[int]) -> list[float]:
    """The steps of each power of ten, from the last at or below `low` to the first at or above `high`; two at least."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 2)
    # 10.0**-2 * 2 has digits at its end that nobody asked for.
    candidates = [float(f"{step}e{power}") for power in powers for step in steps]
    first = max(index for index, value in enumerate(candidates) if value <= low * (1 + 1e-9))
    last = next(index for index, value in enumerate(candidates) if value >= high * (1 - 1e-9))
    return candidates[first : max(last, first + 1) + 1]


def _thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """At most so many points as the eye can tell apart: of each run the lowest and the highest, so that peaks stay."""
    if len(points) <= POINTS_MAX:
        return points
    run = math.ceil(len(points) / (POINTS_MAX // 2))
    kept: list[tuple[float, float]] = []
    for start in range(0, len(points), run):
        part = points[start : start + run]
        ends = {min(range(len(part)), key=lambda i: part[i][1]), max(range(len(part)), key=lambda i: part[i][1])}
        kept += [part[index] for index in sorted(ends)]
    return kept
