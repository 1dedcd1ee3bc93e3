"""`bootstrap` and `[output]`."""

from __future__ import annotations

from typing import Final

from penstock.agent.settings.model import OutputSettings
from penstock.agent.settings.producing import OWN, producer_name, refusal, security_refusal
from penstock.client.cluster_view import parse_bootstrap
from penstock.declared.fields import Table
from penstock.protocol.compression import CODECS

DEFAULT_BOOTSTRAP: Final = "localhost:9092"
MEMORY_BYTES_MIN: Final = 1 << 20
MEMORY_BYTES_MAX: Final = 1 << 40

_ACKS_ONE: Final = (
    'acks = "1" gives up a promise: what only the leader has is lost when it dies, and a retry may double a record'
)


def read_bootstrap(file: Table) -> str:
    bootstrap = file.text("bootstrap") or DEFAULT_BOOTSTRAP
    try:
        parse_bootstrap(bootstrap)
    except ValueError as wrong:
        file.wrong("bootstrap", f"bootstrap: {wrong}")
        return DEFAULT_BOOTSTRAP
    return bootstrap


def read_output(file: Table) -> OutputSettings:
    table = file.table("output")
    if table is None:
        return OutputSettings()
    acks = _acks(table)
    for name in ("exactly_once", "machine_id"):
        if table.value(name) is not None:
            table.wrong(name, f"{name} is not set here: it stands at the top of the file, above all [tables]")
    settings = OutputSettings(
        acks=acks,
        compression=table.choice("compression", CODECS, "lz4"),
        linger_ms=table.duration_ms("linger", 20, high=60_000),
        memory_bytes=table.size_bytes("memory", 64 << 20, low=MEMORY_BYTES_MIN, high=MEMORY_BYTES_MAX),
        create_topics=table.flag("create_topics", True),
        flush_within_ms=table.duration_ms("flush_within", 30_000),
        kafka=_kafka(table),
    )
    table.finish()
    return settings


def _acks(table: Table) -> str:
    given = table.value("acks")
    if given is None:
        return "all"
    if isinstance(given, bool) or str(given) not in ("all", "-1", "1"):
        words = "an agent promises to know what arrived" if given in (0, "0") else 'there is "all" and "1"'
        table.wrong("acks", f"acks = {given!r} cannot be: {words}")
        return "all"
    if str(given) == "1":
        table.notes.warn((*table.path, "acks"), _ACKS_ONE)
        return "1"
    return "all"


def _kafka(table: Table) -> dict[str, str]:
    """Producer settings, each told in its place when a producer would not take it."""
    found: dict[str, str] = {}
    for name, value in table.options("kafka").items():
        keyword = producer_name(name)
        words = f"{name} is not set here: that is {OWN[keyword]}" if keyword in OWN else refusal(keyword, value)
        if words:
            table.notes.wrong((*table.path, "kafka", name), words.replace(keyword, name))
        else:
            found[name] = value
    client_config = table.text("client_config")
    if client_config is not None:
        found["client_config"] = client_config
    if words := security_refusal(found):
        table.wrong("client_config" if client_config is not None else "kafka", words)
    return found
