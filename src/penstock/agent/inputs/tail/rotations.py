"""Names that rotation gives: of which name, which number, and whether what bears it can be read. Pure.

access.log.1   access.log.2.gz   access.log-20261117   access.log.2026-11-17   access-20261117.log   access.log.old
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_PACKED: Final = re.compile(r"\.(gz|zst|bz2|xz|lzma|lz4|zip|Z)$")
_READABLE: Final = ("gz", "zst")
_SEPARATOR: Final = re.compile(r"[.\-_]")
_MARK: Final = re.compile(r"\d[\d\-_.T:]*|old")
_NUMBER: Final = re.compile(r"\d{1,5}")
# A mere number before the extension is another file: `worker-2.log` is no older `worker.log`.
_DATED: Final = re.compile(
    r"(?P<stem>.+?)[.\-_](?:19|20)\d\d[\-_.]?(?:0[1-9]|1[0-2])(?:[\-_.T:]?\d+)*(?P<extension>\.[A-Za-z]\w*)"
)


@dataclass(frozen=True, slots=True)
class Rotation:
    """What a name tells when it is taken for a rotation's."""

    base: str
    """The name that was rotated."""
    number: int | None = None
    """Which one, when they are counted."""
    readable: bool = True
    """False for forms of compression that are not understood."""


def rotations_of(name: str) -> list[Rotation]:
    """All that a name may be a rotation of, the longest base first: `app.log.1.2` of `app.log.1`, or of `app.log`."""
    packed = _PACKED.search(name)
    plain = name[: packed.start()] if packed else name
    readable = packed is None or packed[1] in _READABLE
    found = [Rotation(plain, None, readable)] if packed and plain else []
    for separator in reversed(list(_SEPARATOR.finditer(plain))):
        base, mark = plain[: separator.start()], plain[separator.end() :]
        if base and _MARK.fullmatch(mark):
            found.append(Rotation(base, int(mark) if _NUMBER.fullmatch(mark) else None, readable))
    dated = _DATED.fullmatch(plain)
    if dated is not None:
        found.append(Rotation(dated["stem"] + dated["extension"], None, readable))
    return found


def is_rotation(path: str, base: str) -> bool:
    """By name alone, whatever the folders."""
    name = base.rpartition("/")[2]
    return any(rotation.base == name for rotation in rotations_of(path.rpartition("/")[2]))


def missing_numbers(known: int, modified_ns: Mapping[int, int]) -> list[int]:
    """Numbers below a known one that nothing bears, though they must have been given.

    Some count the other way, the youngest last; then smaller numbers may have been deleted. So there has to be another
    number whose time says that the larger are the older.
    """
    at_ns = modified_ns[known]
    others = [(number, other_ns) for number, other_ns in modified_ns.items() if other_ns != at_ns]
    falling = any((number > known) == (other_ns < at_ns) for number, other_ns in others)
    first = 0 if 0 in modified_ns else 1
    return [number for number in range(first, known) if number not in modified_ns] if falling else []
