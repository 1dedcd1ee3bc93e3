"""kafka.* options: what Kafka's Java consumer is set with, as settings of our client. Pure."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import fields
from typing import Final

from penstock.client.errors import BadSetting
from penstock.client.settings import AdminSettings, ConsumerSettings, kafka_name
from penstock.spark.errors import BadOption
from penstock.spark.given import nearest

_log = logging.getLogger("penstock.spark.source")

_REFUSED: Final = {
    "auto.offset.reset": "say where to begin with startingOffsets",
    "key.deserializer": "keys are bytes; decode them with column expressions",
    "value.deserializer": "values are bytes; decode them with value.format or column expressions",
    "key.serializer": "keys are bytes; encode them with column expressions",
    "value.serializer": "values are bytes; encode them with column expressions",
    "enable.auto.commit": "offsets are kept in the query's checkpoint",
    "interceptor.classes": "interceptors are Java classes, and no Java reads the topic here",
}

_NOT_OURS: Final = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.include.jmx.reporter",
        "client.dns.lookup",
        "config.providers",
        "connections.max.idle.ms",
        "enable.metrics.push",
        "exclude.internal.topics",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "max.poll.records",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partition.assignment.strategy",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "security.providers",
        "send.buffer.bytes",
        "session.timeout.ms",
        "share.acknowledgement.mode",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
        "throw.on.fetch.stable.offset.unsupported",
    }
)
"""Kafka's consumer has them; they mean nothing to somebody who reads exact ranges and joins no group."""

_SECURITY: Final = ("security.protocol", "sasl.", "ssl.")

_told: set[str] = set()


def client_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Consumer settings, by our names, for options without their `kafka.`; `bootstrap_servers` is among them."""
    names = {kafka_name(setting): setting.name for setting in fields(ConsumerSettings)} | {
        setting.name.replace("_", "."): setting.name for setting in fields(ConsumerSettings)
    }
    settings: dict[str, str] = {}
    for name, value in sorted(given.items()):
        if name in _REFUSED:
            raise BadOption(f"kafka.{name} cannot be set: {_REFUSED[name]}")
        if name in _NOT_OURS:
            _tell_once(name)
        elif name.startswith(_SECURITY):
            _refuse_security(name, value)
        elif name in names:
            settings[names[name]] = value.strip()
        else:
            known = [f"kafka.{each}" for each in (*names, *_NOT_OURS)]
            raise BadOption(f"there is no option 'kafka.{name}'{nearest(f'kafka.{name}', known)}")
    if not settings.get("bootstrap_servers"):
        raise BadOption("kafka.bootstrap.servers is missing: say where the brokers are, as in 'localhost:9092'")
    try:
        ConsumerSettings.of(settings)
    except BadSetting as wrong:
        raise BadOption(f"kafka.{wrong}") from None
    return settings


def admin_settings(settings: Mapping[str, str], patience_ms: int) -> dict[str, str]:
    """Those of consumer settings that an Admin has; no call takes longer than `patience_ms`."""
    known = {setting.name for setting in fields(AdminSettings)}
    found = {name: value for name, value in settings.items() if name in known}
    found["default_api_timeout_ms"] = str(patience_ms)
    return found


def _refuse_security(name: str, value: str) -> None:
    if name == "security.protocol" and value.strip().upper() == "PLAINTEXT":
        return
    raise BadOption(
        f"kafka.{name}: this client speaks PLAINTEXT only so far; connect to a plain listener inside a trusted network"
    )


def _tell_once(name: str) -> None:
    if name not in _told:
        _told.add(name)
        _log.warning("kafka.%s has no meaning here and is not used: ranges are read without a consumer group", name)
