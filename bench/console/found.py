"""What was found: figures with what they should be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A number in words; `met` is None where nothing is asked of it."""

    name: str
    value: str
    wanted: str = ""
    met: bool | None = None


def bound(name: str, value: float, most: float, unit: str, digits: int = 1) -> Figure:
    return Figure(name, f"{value:.{digits}f} {unit}", f"at most {most:g} {unit}", value <= most)
