"""What can be set for one group or for a client metrics subscription, and which values are allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from penstock.model.config.broker import BROKER_CONFIGS
from penstock.model.config.definition import ConfigDef, ConfigValue, by_name
from penstock.model.config.tables.client_metrics import CLIENT_METRICS
from penstock.model.config.tables.group_overrides import GROUP_OVERRIDES
from penstock.model.errors import INVALID_CONFIG, INVALID_REQUEST, Refused

GROUP_CONFIGS: Final[dict[str, ConfigDef]] = by_name(GROUP_OVERRIDES)
CLIENT_METRICS_CONFIGS: Final[dict[str, ConfigDef]] = by_name(CLIENT_METRICS)

PUSH_INTERVAL_MS: Final = range(100, 3_600_001)
MATCH_KEYS: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)

# Broker properties that bound a group's own: group.consumer.min.session.timeout.ms for consumer.session.timeout.ms.
_BOUNDED: Final = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
    "share.session.timeout.ms",
    "share.heartbeat.interval.ms",
    "share.assignment.interval.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "streams.session.timeout.ms",
    "streams.heartbeat.interval.ms",
    "streams.assignment.interval.ms",
)


def group_defaults(broker: Mapping[str, object]) -> dict[str, ConfigValue]:
    """What a group without overrides gets on a broker with the typed values `broker`, by the group's names."""
    return {row.name: _default(row, broker) for row in GROUP_OVERRIDES}


def _default(row: ConfigDef, broker: Mapping[str, object]) -> ConfigValue:
    if not row.synonyms:
        return row.default_value
    value = _broker_value(row.synonyms[0].name, broker)
    assert isinstance(value, int), "all group properties with a broker synonym are numbers"
    return value


def _broker_value(name: str, broker: Mapping[str, object]) -> object:
    return broker.get(name, BROKER_CONFIGS[name].default_value)


def group_values(overrides: Mapping[str, str], broker: Mapping[str, object]) -> dict[str, ConfigValue]:
    """The values in force for a group with `overrides`. Refused for a name or value that no group can have."""
    values = group_defaults(broker)
    for name, text in overrides.items():
        row = GROUP_CONFIGS.get(name)
        if row is None:
            raise Refused(INVALID_CONFIG, f"Unknown group config name: {name}")
        values[name] = row.parse(text)
    return values


def validate_group_configs(overrides: Mapping[str, str], broker: Mapping[str, object] | None = None) -> None:
    """Refused with INVALID_CONFIG unless a group on `broker` may have these overrides."""
    broker = broker or {}
    values = group_values(overrides, broker)
    for name in _BOUNDED:
        kind, _, rest = name.partition(".")
        for bound, word in ((f"group.{kind}.min.{rest}", "at least"), (f"group.{kind}.max.{rest}", "at most")):
            limit, value = _broker_value(bound, broker), values[name]
            assert isinstance(limit, int)
            assert isinstance(value, int)
            if value < limit if word == "at least" else value > limit:
                raise Refused(INVALID_CONFIG, f"{name} must be {word} {bound}, {limit}")
    _check_standbys(values, broker)
    for kind in ("consumer", "share", "streams"):
        heartbeat, session = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
        if values[heartbeat] >= values[session]:  # type: ignore[operator]  # both are integers by the table
            raise Refused(INVALID_CONFIG, f"{heartbeat} must be less than {session}")


def _check_standbys(values: Mapping[str, ConfigValue], broker: Mapping[str, object]) -> None:
    bound = "group.streams.max.standby.replicas"
    limit, value = _broker_value(bound, broker), values["streams.num.standby.replicas"]
    assert isinstance(limit, int)
    assert isinstance(value, int)
    if value > limit:
        raise Refused(INVALID_CONFIG, f"streams.num.standby.replicas must be at most {bound}, {limit}")


def validate_client_metrics_configs(overrides: Mapping[str, str]) -> None:
    """Refused unless a subscription may say this: INVALID_REQUEST for names and the interval, else INVALID_CONFIG."""
    for name, text in overrides.items():
        row = CLIENT_METRICS_CONFIGS.get(name)
        if row is None:
            raise Refused(INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
        value = row.parse(text)
        if name == "interval.ms" and value not in PUSH_INTERVAL_MS:
            bounds = f"{PUSH_INTERVAL_MS[0]} to {PUSH_INTERVAL_MS[-1]}"
            raise Refused(INVALID_REQUEST, f"Invalid value {value} for interval.ms: it must be {bounds}")
        if name == "match":
            assert isinstance(value, tuple)
            match_patterns(value)


def match_patterns(entries: tuple[str, ...]) -> dict[str, re.Pattern[str]]:
    """The patterns of a `match` list by key. Refused with INVALID_CONFIG for an entry that is not key=pattern."""
    patterns: dict[str, re.Pattern[str]] = {}
    for entry in entries:
        parts = entry.split("=")
        if len(parts) != 2 or parts[0].strip() not in MATCH_KEYS:
            raise Refused(INVALID_CONFIG, f"Illegal client matching pattern: {entry}")
        try:
            patterns[parts[0].strip()] = re.compile(parts[1].strip())
        except re.error:
            raise Refused(INVALID_CONFIG, f"Illegal client matching pattern: {entry}") from None
    return patterns
