"""kafka.* options: what Kafka's Java consumer is set with, as settings of our client. Pure."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from penstock.client.security_settings import names_of_security
from penstock.client.settings import AdminSettings, ConsumerSettings
from penstock.spark.kafka_settings import KafkaSettings

READ_COMMITTED: Final = "read_committed"

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

_READING: Final = KafkaSettings(
    ConsumerSettings,
    _REFUSED,
    _NOT_OURS,
    ": ranges are read without a consumer group",
    logging.getLogger("penstock.spark.source"),
)


def client_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Consumer settings, by our names, for options without their `kafka.`; `bootstrap_servers` is among them.

    Only committed records are read unless somebody says otherwise: what Spark makes of an aborted one stays in tables.
    """
    return {"isolation_level": READ_COMMITTED, **_READING.of(given)}


def admin_settings(settings: Mapping[str, str], patience_ms: int) -> dict[str, Any]:
    """Those of consumer settings that an Admin has; no call takes longer than `patience_ms`."""
    known = {setting.name for setting in fields(AdminSettings)}
    found = {name: value for name, value in settings.items() if name in known}
    found["default_api_timeout_ms"] = str(patience_ms)
    return found


def security_of(given: Mapping[str, str]) -> dict[str, str]:
    """Of options without their `kafka.`: what any client of the same cluster needs for TLS and its login."""
    names = names_of_security()
    return {name: value for name, value in client_settings(given).items() if name in names}
