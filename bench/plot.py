"""A bar chart of ratios as a hand-made SVG: one bar a figure, a line where both are level."""

from __future__ import annotations

import math
from html import escape

from bench.series import Series

ROW, BAR_WIDTH, MARGIN, LETTER_WIDTH = 22, 420, 16, 7.2
AHEAD, BEHIND, INK, RULE = "#2f7d5b", "#b3553a", "#222222", "#999999"


def ratio_chart(series: list[Series], title: str) -> str:
    """Bars on a logarithmic scale, so that twice as good and half as good are equally far from the line."""
    rows = [(each, ratio) for each in series if (ratio := each.ratio()) is not None]
    reach = max([2.0, *(max(ratio, 1 / ratio) for _, ratio in rows)])
    labels = [f"{each.group}: {each.name}" for each, _ in rows]
    # Nobody measures the reader's font; this is wide for any of the usual ones.
    label_width = round(max(map(len, labels), default=0) * LETTER_WIDTH) + 8
    height = MARGIN * 2 + ROW * (len(rows) + 1)
    width = MARGIN * 2 + label_width + BAR_WIDTH + 60
    middle = MARGIN + label_width + BAR_WIDTH / 2

    def x(ratio: float) -> float:
        return middle + math.log(ratio) / math.log(reach) * BAR_WIDTH / 2

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="{MARGIN + 4}" font-weight="bold" fill="{INK}">{escape(title)}</text>',
        f'<line x1="{middle}" y1="{MARGIN + 12}" x2="{middle}" y2="{height - MARGIN}" stroke="{RULE}"/>',
    ]
    for index, ((_, ratio), label) in enumerate(zip(rows, labels, strict=True), start=1):
        top = MARGIN + ROW * index
        left, right = sorted((middle, x(ratio)))
        out += [
            f'<text x="{MARGIN + label_width - 8}" y="{top + 12}" text-anchor="end" '
            f'fill="{INK}">{escape(label)}</text>',
            f'<rect x="{left:.1f}" y="{top}" width="{max(right - left, 1):.1f}" height="{ROW - 6}" '
            f'fill="{AHEAD if ratio >= 1 else BEHIND}"/>',
            f'<text x="{MARGIN + label_width + BAR_WIDTH + 8}" y="{top + 12}" fill="{INK}">{ratio:.2f}×</text>',
        ]
    return "\n".join([*out, "</svg>"]) + "\n"
