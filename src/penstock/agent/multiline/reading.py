"""The settings of multiline: the name of a preset, or a table with a mode and its patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.agent.multiline.gathering import Gatherer
from penstock.agent.multiline.rules import ANY, MODES, PRESETS, Pattern, by_mode, preset
from penstock.declared.fields import Table
from penstock.declared.mistakes import did_you_mean
from penstock.model.patterns import compile_re2


@dataclass(frozen=True, slots=True)
class Multiline:
    """How lines become events."""

    preset: str = ""
    mode: str = ""
    start: str = ""
    """The first line of an event; empty: any line may be. Other lines are events by themselves."""
    condition: str = ""
    timeout_ms: int = 1000
    """An event that nothing was added to for so long goes on."""
    lines_max: int = 1000
    bytes_max: int = 1 << 20

    def gatherer(self) -> Gatherer:
        """One for each file."""
        if self.preset:
            rule = preset(self.preset)
        else:
            start = compiled(self.start) if self.start else ANY
            rule = by_mode(self.mode, start, compiled(self.condition))
        return Gatherer(rule, self.timeout_ms, self.lines_max, self.bytes_max)


def compiled(pattern: str) -> Pattern:
    """Linear in the line; bytes that are no UTF-8 are characters like others. Raises `ValueError`."""
    return compile_re2(pattern.encode(), latin1=True)


def read_multiline(table: Table, key: str = "multiline") -> Multiline | None:
    """None when it is not wanted, or not understood, which is noted."""
    if key not in table:
        return None
    if isinstance(table.values[key], str):
        name = table.choice(key, PRESETS, "")
        return Multiline(preset=name) if name else None
    own = table.table(key)
    if own is None:
        return None
    return _read_table(own)


def _read_table(own: Table) -> Multiline | None:
    values: dict[str, Any] = {
        "preset": own.choice("preset", PRESETS, ""),
        "mode": own.choice("mode", MODES, ""),
        "start": _pattern(own, "start"),
        "condition": _pattern(own, "condition"),
        "timeout_ms": own.duration_ms("timeout", 1000, low=1),
        "lines_max": own.integer("lines_max", 1000, 2, 1_000_000),
        "bytes_max": own.size_bytes("bytes_max", 1 << 20, low=16),
    }
    if values["preset"]:
        for given in ("mode", "start", "condition"):
            if given in own:
                own.wrong(given, f"{given} has no meaning beside a preset: leave out one of the two")
    elif "mode" not in own and "preset" not in own:
        known = ", ".join(MODES)
        own.wrong(None, f"multiline has no mode: one of {known}, or a preset{did_you_mean('', PRESETS)}")
    elif "mode" in own and "condition" not in own:
        own.wrong(
            None, f"multiline with mode = {values['mode']!r} needs a condition: a pattern for the lines it is about"
        )
    own.finish()
    usable = values["preset"] or (values["mode"] and values["condition"])
    return Multiline(**values) if usable else None


def _pattern(own: Table, key: str) -> str:
    text = own.text(key)
    if text is None:
        return ""
    try:
        compiled(text)
    except ValueError as error:
        own.wrong(key, f"{key} is no pattern: {error}")
        return ""
    return text
