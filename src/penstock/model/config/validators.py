"""Bounds of values. A validator tells in words what is allowed, and what is wrong with a value, or None."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Patterns stay text: `re` compiles and keeps them at first use, which most runs never reach.
_THROTTLED_REPLICAS = r"([0-9]+:[0-9]+)?(,[0-9]+:[0-9]+)*,?"
_VOTER = r"(-?[0-9]+)@\[?([0-9a-zA-Z\-%._:]+)\]?:([0-9]+)"
_HOST_PORT = r"\[?([0-9a-zA-Z\-%._:]+)\]?:([0-9]+)"
_DURATION = (
    r"(?i:([-+]?)P(?:([-+]?[0-9]+)D)?"
    r"(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?)"
)


class Validator:
    """`allowed` is for the reference page; `problem(value)` is None when the value may stand."""

    __slots__ = ("allowed",)

    def __init__(self, allowed: str) -> None:
        self.allowed = allowed

    def problem(self, value: object) -> str | None:
        raise AssertionError("every validator decides for itself")


class Range(Validator):
    """A number from `least` to `most`, both included; either may be open."""

    __slots__ = ("least", "most")

    def __init__(self, least: float | None, most: float | None) -> None:
        super().__init__(f"at least {least}" if most is None else f"{least} to {most}")
        self.least, self.most = least, most

    def problem(self, value: object) -> str | None:
        assert isinstance(value, int | float)
        # NaN compares false with everything and so passes, as it does in Kafka.
        if self.least is not None and value < self.least:
            return f"it must be at least {self.least}"
        if self.most is not None and value > self.most:
            return f"it must be at most {self.most}"
        return None


class GzipLevel(Validator):
    """1 to 9, or -1 for the default of the codec."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("1 to 9, or -1")

    def problem(self, value: object) -> str | None:
        assert isinstance(value, int)
        return None if value == -1 or 1 <= value <= 9 else "it must be 1 to 9, or -1"


class OneOf(Validator):
    """One of a few words."""

    __slots__ = ("ignore_case", "options")

    def __init__(self, options: Sequence[str], *, ignore_case: bool = False) -> None:
        super().__init__("one of " + ", ".join(options) + (" in any case" if ignore_case else ""))
        self.options, self.ignore_case = tuple(options), ignore_case

    def problem(self, value: object) -> str | None:
        assert isinstance(value, str)
        found = value.upper() in self.options if self.ignore_case else value in self.options
        return None if found else f"it must be {self.allowed}"


class ListOf(Validator):
    """A list without empty entries, of given words if there are any. Repeated entries are dropped when read."""

    __slots__ = ("empty", "options")

    def __init__(self, options: Sequence[str] = (), *, empty: bool) -> None:
        words = "any of " + ", ".join(options) if options else ""
        super().__init__(words if empty else (words + ", not empty").removeprefix(", "))
        self.options, self.empty = tuple(options), empty

    def problem(self, value: object) -> str | None:
        assert isinstance(value, tuple)
        if not value and not self.empty:
            return "the list must not be empty"
        for entry in value:
            if not entry:
                return "the list must not have empty entries"
            if self.options and entry not in self.options:
                return f"{entry} is not one of {', '.join(self.options)}"
        return None


class Filled(Validator):
    """Text that is not empty."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("not empty")

    def problem(self, value: object) -> str | None:
        return None if value else "it must not be empty"


class ThrottledReplicas(Validator):
    """`*`, or partition:broker entries."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("* or partition:broker entries")

    def problem(self, value: object) -> str | None:
        assert isinstance(value, tuple)
        text = ",".join(value)
        if text == "*" or re.fullmatch(_THROTTLED_REPLICAS, text) is not None:
            return None
        return "it must be * or a list of partition:broker entries such as 0:1,1:2"


class Voters(Validator):
    """id@host:port entries; empty when the quorum is found through bootstrap servers."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("id@host:port entries")

    def problem(self, value: object) -> str | None:
        assert isinstance(value, tuple)
        for entry in value:
            if re.fullmatch(_VOTER, entry) is None:
                return f"{entry!r} is not of the form id@host:port"
        return None


class HostPorts(Validator):
    """host:port entries."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("host:port entries")

    def problem(self, value: object) -> str | None:
        assert isinstance(value, tuple)
        for entry in value:
            if re.fullmatch(_HOST_PORT, entry) is None:
                return f"{entry!r} is not of the form host:port"
        return None


class OffsetReset(Validator):
    """earliest, latest, or by_duration: and an ISO 8601 duration that is not negative."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("earliest, latest, or by_duration:PnDTnHnMn.nS")

    def problem(self, value: object) -> str | None:
        assert isinstance(value, str)
        if value in ("earliest", "latest"):
            return None
        kind, colon, duration = value.partition(":")
        if kind == "by_duration" and colon and (length_ms := duration_ms(duration)) is not None and length_ms >= 0:
            return None
        return f"it must be {self.allowed}"


def voter_parts(entry: str) -> tuple[int, str, int]:
    """(id, host, port) of a voter entry that has passed `Voters`."""
    found = re.fullmatch(_VOTER, entry)
    assert found is not None, "voters are checked when they are read"
    return int(found[1]), found[2], int(found[3])


def host_port_parts(entry: str) -> tuple[str, int]:
    """(host, port) of an entry that has passed `HostPorts`."""
    found = re.fullmatch(_HOST_PORT, entry)
    assert found is not None, "bootstrap servers are checked when they are read"
    return found[1], int(found[2])


def duration_ms(text: str) -> int | None:
    """The milliseconds of an ISO 8601 duration without months, such as `P1DT2H` or `PT1.5S`; None if it is none."""
    found = re.fullmatch(_DURATION, text)
    if found is None or (found[3] is not None and len(found[3]) == 1):
        return None
    days, hours, minutes, seconds = (int(found[group] or 0) for group in (2, 4, 5, 6))
    if found[2] is None and found[3] is None:
        return None
    fraction_ms = int((found[7] or "").ljust(3, "0")[:3])
    total = ((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1_000
    total += -fraction_ms if (found[6] or "").startswith("-") else fraction_ms
    return -total if found[1] == "-" else total


def at_least(least: float) -> Range:
    return Range(least, None)


def between(least: float, most: float) -> Range:
    return Range(least, most)
