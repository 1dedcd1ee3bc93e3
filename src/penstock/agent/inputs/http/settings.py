"""The settings of an HTTP input, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

from penstock.agent.listening.addresses import Address, TlsFiles, read_addresses, read_tls
from penstock.declared.fields import Table

FORMATS: Final = ("auto", "json", "ndjson", "raw", "lines")
AnswerWhen = Literal["acknowledged", "taken"]


@dataclass(frozen=True, slots=True)
class HttpSettings:
    listen: tuple[Address, ...]
    path: str
    format: str
    """`auto` goes by the content type."""
    body_bytes_max: int
    line_bytes_max: int
    token: str | None
    tls: TlsFiles | None
    answer_when: AnswerWhen
    answer_within_ms: int
    """Then 503: the events may still arrive, and the sender sends them again."""
    retry_after_ms: int
    connections_max: int
    idle_timeout_ms: int


def read_settings(table: Table, folder: Path) -> HttpSettings:
    path = table.text("path") or "/"
    if not path.startswith("/"):
        table.wrong("path", f'path must begin with a slash: "/{path}"')
    listen = read_addresses(table, "listen", ("http", "https"), default="127.0.0.1:8686")
    if any(address.scheme == "https" for address in listen) and "tls" not in table:
        table.wrong("listen", 'https:// needs tls = { cert = "cert.pem", key = "key.pem" }')
    return HttpSettings(
        listen=listen,
        path=path,
        format=table.choice("format", FORMATS, "auto"),
        body_bytes_max=table.size_bytes("body_bytes_max", 16 << 20, low=1 << 10, high=1 << 30),
        line_bytes_max=table.size_bytes("line_bytes_max", 1 << 20, low=1 << 10, high=64 << 20),
        token=table.text("token"),
        tls=read_tls(table, folder),
        answer_when=cast(AnswerWhen, table.choice("answer_when", ("acknowledged", "taken"), "acknowledged")),
        answer_within_ms=table.duration_ms("answer_within", 30_000, low=100, high=3_600_000),
        retry_after_ms=table.duration_ms("retry_after", 1_000, low=0, high=3_600_000),
        connections_max=table.integer("connections_max", 1_024, 1, 65_536),
        idle_timeout_ms=table.duration_ms("idle_timeout", 60_000, low=100),
    )
