"""What a topic is told: its properties, where their defaults come from, which values go together.

`TopicSettings` is what the rest of the broker reads: plain typed attributes, made once per topic and config change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.model.config.broker import BROKER_CONFIGS
from penstock.model.config.definition import ConfigDef, ConfigValue, by_name
from penstock.model.config.tables.topics import TOPICS
from penstock.model.errors import INVALID_CONFIG, Refused

TOPIC_CONFIGS: Final[dict[str, ConfigDef]] = by_name(TOPICS)

# Local retention has a value of its own for "whatever the whole retention is".
SAME_AS_RETENTION: Final = -2
UNLIMITED: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """The settings in force for one topic. An attribute is its property with underscores, unless said otherwise."""

    compacts: bool  # cleanup.policy has compact
    deletes: bool  # cleanup.policy has delete
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    delete_retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    follower_replication_throttled_replicas: tuple[str, ...]
    leader_replication_throttled_replicas: tuple[str, ...]
    index_interval_bytes: int
    local_retention_bytes: int  # -2 is resolved: never beyond retention_bytes
    local_retention_ms: int  # -2 is resolved: never beyond retention_ms
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str  # CreateTime or LogAppendTime
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    remote_log_copy_disable: bool
    remote_log_delete_on_disable: bool
    remote_storage_enable: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int  # internal.segment.bytes where that is set
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    unclean_leader_election_enable: bool

    @classmethod
    def of(cls, overrides: Mapping[str, str], broker: Mapping[str, object]) -> TopicSettings:
        """The settings of a topic with `overrides` on a broker with the typed values `broker`.

        A broker value that is missing counts as Kafka's default, so `{}` will do in a test.
        """
        return cls.over(topic_defaults(broker), overrides)

    @classmethod
    def over(cls, defaults: Mapping[str, ConfigValue], overrides: Mapping[str, str]) -> TopicSettings:
        """The same from `topic_defaults(broker)`, which is worth keeping when there are many topics."""
        return cls._from_values({**defaults, **parse_overrides(overrides)})

    @classmethod
    def _from_values(cls, values: dict[str, ConfigValue]) -> TopicSettings:
        policy = values.pop("cleanup.policy")
        assert isinstance(policy, tuple)
        if (smaller := values.pop("internal.segment.bytes")) is not None:
            values["segment.bytes"] = smaller
        for limit in ("retention.bytes", "retention.ms"):
            if values[f"local.{limit}"] == SAME_AS_RETENTION:
                values[f"local.{limit}"] = values[limit]
        attributes = {name.replace(".", "_"): value for name, value in values.items()}
        # The table gives every property its type; a test compares it with the annotations above.
        # The table gives each attribute the type that its field declares; mypy sees only their union.
        return cls(compacts="compact" in policy, deletes="delete" in policy, **attributes)  # type: ignore[arg-type]


def topic_defaults(broker: Mapping[str, object]) -> dict[str, ConfigValue]:
    """What a topic without overrides gets on a broker, by property name and with values in the topic's units."""
    return {row.name: _default(row, broker) for row in TOPICS}


def _default(row: ConfigDef, broker: Mapping[str, object]) -> ConfigValue:
    for name, factor in row.synonyms:
        value = broker.get(name, BROKER_CONFIGS[name].default_value)
        if value is not None:
            assert isinstance(value, bool | int | float | str | tuple)
            if row.name == "retention.ms" and isinstance(value, int) and value < 0:
                return UNLIMITED
            return value if factor == 1 else int(value) * factor  # type: ignore[arg-type]  # only numbers have a factor
    return row.default_value


def parse_overrides(overrides: Mapping[str, str | None]) -> dict[str, ConfigValue]:
    """The typed values of a topic's overrides. Refused for a name or a value that no topic can have."""
    values: dict[str, ConfigValue] = {}
    for name, text in overrides.items():
        row = TOPIC_CONFIGS.get(name)
        if row is None:
            raise Refused(INVALID_CONFIG, f"Unknown topic config name: {name}")
        if text is None:
            raise Refused(INVALID_CONFIG, f"A topic config cannot be null: {name}")
        values[name] = row.parse(text)
    return values


def validate_topic_configs(
    overrides: Mapping[str, str | None],
    broker: Mapping[str, object] | None = None,
    *,
    previous: Mapping[str, str] | None = None,
) -> None:
    """Refused with INVALID_CONFIG unless a topic on `broker` may have these overrides after having had `previous`."""
    broker = broker or {}
    values = {**topic_defaults(broker), **parse_overrides(overrides)}
    _check_compaction_lag(values)
    if values["remote.storage.enable"]:
        _check_tiering(values, allowed=bool(broker.get("remote.log.storage.system.enable", False)))
    elif _was_tiered(previous or {}) and not values["remote.log.delete.on.disable"]:
        raise Refused(
            INVALID_CONFIG,
            "Remote storage cannot be turned off while remote data is kept. Set remote.log.delete.on.disable=true to "
            "delete it, or keep remote.storage.enable=true and set remote.log.copy.disable=true to read it only.",
        )


def _check_compaction_lag(values: Mapping[str, ConfigValue]) -> None:
    least, most = _number(values, "min.compaction.lag.ms"), _number(values, "max.compaction.lag.ms")
    if least > most:
        raise Refused(INVALID_CONFIG, f"min.compaction.lag.ms ({least}) is greater than max.compaction.lag.ms ({most})")


def _was_tiered(previous: Mapping[str, str]) -> bool:
    return previous.get("remote.storage.enable", "").strip().lower() == "true"


def _check_tiering(values: Mapping[str, ConfigValue], *, allowed: bool) -> None:
    if not allowed:
        raise Refused(INVALID_CONFIG, "remote.storage.enable needs remote.log.storage.system.enable=true on brokers")
    policy = values["cleanup.policy"]
    assert isinstance(policy, tuple)
    if "compact" in policy:
        raise Refused(INVALID_CONFIG, "remote.storage.enable: a compacted topic cannot use remote storage")
    for limit in ("retention.bytes", "retention.ms"):
        _check_local_limit(values, limit)


def _check_local_limit(values: Mapping[str, ConfigValue], limit: str) -> None:
    whole, local = _number(values, limit), _number(values, f"local.{limit}")
    if local == SAME_AS_RETENTION:
        return
    if whole > UNLIMITED and (local == UNLIMITED or local > whole):
        why = f"it must not exceed {limit}, {whole}"
        raise Refused(INVALID_CONFIG, f"Invalid value {local} for configuration local.{limit}: {why}")
    if values["remote.log.copy.disable"] and local != whole:
        raise Refused(INVALID_CONFIG, f"With remote.log.copy.disable=true, local.{limit} must equal {limit}")


def _number(values: Mapping[str, ConfigValue], name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value
