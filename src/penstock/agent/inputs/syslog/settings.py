"""The settings of a syslog input, and how they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Final, cast

from penstock.agent.inputs.syslog.parsing import Format
from penstock.agent.listening.addresses import Address, TlsFiles, read_addresses, read_tls_for
from penstock.declared.fields import Table

SCHEMES: Final = ("udp", "tcp", "tls")
FORMATS: Final = ("auto", "rfc3164", "rfc5424")
_OFFSET: Final = re.compile(r"([+-])(\d\d):?(\d\d)")


@dataclass(frozen=True, slots=True)
class SyslogSettings:
    listen: tuple[Address, ...]
    tls: TlsFiles | None
    message_bytes_max: int
    connections_max: int
    idle_timeout_ms: int
    format: Format
    keep_raw: bool
    """Adds the field `raw`: the message as it came."""
    zone: tzinfo | None
    """Of dates that name none; None is this machine's local time."""
    receive_buffer_bytes: int
    """What the kernel is asked to hold of datagrams."""


def read_settings(table: Table, folder: Path) -> SyslogSettings:
    listen = read_addresses(table, "listen", SCHEMES)
    return SyslogSettings(
        listen=listen,
        tls=read_tls_for(table, folder, listen),
        message_bytes_max=table.size_bytes("message_bytes_max", 64 << 10, low=480, high=16 << 20),
        connections_max=table.integer("connections_max", 1_024, 1, 65_536),
        idle_timeout_ms=table.duration_ms("idle_timeout", 3_600_000, low=100),
        format=cast(Format, table.choice("format", FORMATS, "auto")),
        keep_raw=table.flag("keep_raw"),
        zone=_read_zone(table),
        receive_buffer_bytes=table.size_bytes("receive_buffer", 8 << 20, low=64 << 10, high=1 << 30),
    )


def _read_zone(table: Table) -> tzinfo | None:
    """`local`, `UTC`, `+02:00` or a name such as `Europe/Berlin`."""
    text = table.text("timezone")
    if text is None or text == "local":
        return None
    if text in ("UTC", "Z"):
        return UTC
    offset = _OFFSET.fullmatch(text)
    if offset is not None and int(offset[2]) < 24 and int(offset[3]) < 60:
        away = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-away if offset[1] == "-" else away)
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        table.wrong("timezone", f'timezone = {text!r} is not known: "local", "UTC", "+02:00" or "Europe/Berlin"')
        return None
