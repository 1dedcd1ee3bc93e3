"""Where a partition is read from when nothing says so: `earliest`, `latest`, `none` or `by_duration:PT1H`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from penstock.client.consumer.offsets import EARLIEST, LATEST
from penstock.client.errors import BadSetting

_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:[.,]\d+)?)S)?)?",
    re.IGNORECASE,
)
_BY_DURATION: Final = "by_duration:"


class ResetPolicy(NamedTuple):
    """`timestamp` is what ListOffsets is asked for; `duration_ms` goes back from now; neither means to refuse."""

    name: str
    timestamp: int | None = None
    duration_ms: int | None = None

    def looks_for(self, now_ms: int) -> int | None:
        """The timestamp to look up, or None when the application wants to be told instead.

        A time before 1970 is 1970: to a broker numbers below 0 are no times, and some are names of other places.
        """
        return self.timestamp if self.duration_ms is None else max(0, now_ms - self.duration_ms)


def parse_reset(text: str) -> ResetPolicy:
    """BadSetting when it is none of the four forms."""
    if text in ("earliest", "latest"):
        return ResetPolicy(text, timestamp=EARLIEST if text == "earliest" else LATEST)
    if text == "none":
        return ResetPolicy(text)
    if text.startswith(_BY_DURATION):
        return ResetPolicy(text, duration_ms=parse_duration_ms(text.removeprefix(_BY_DURATION)))
    raise BadSetting(f"offset_reset={text!r}: expected earliest, latest, none or by_duration:PT1H")


def parse_duration_ms(text: str) -> int:
    """An ISO 8601 duration of days and smaller, as Java spells them: `P1DT2H`, `PT0.5S`."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groupdict().values()):
        raise BadSetting(f"offset_reset: {text!r} is no ISO 8601 duration such as PT1H or P1DT12H")
    days, hours, minutes = (int(found[name] or 0) for name in ("days", "hours", "minutes"))
    seconds = float((found["seconds"] or "0").replace(",", "."))
    return ((days * 24 + hours) * 60 + minutes) * 60_000 + round(seconds * 1_000)
