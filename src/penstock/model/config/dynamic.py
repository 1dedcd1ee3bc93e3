"""Configs that change while the cluster runs: what DescribeConfigs tells about them, and what a broker may be told.

A value comes from the strongest layer that has it: the topic or group itself, then the dynamic configs of the broker,
then those of the whole cluster, then the file, then the default. The synonyms of an entry are that list.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from penstock.model.config.broker import (
    BROKER_CONFIGS,
    NEEDS_LISTENER_PREFIX,
    broker_definition,
    broker_synonyms,
    update_mode,
)
from penstock.model.config.definition import ConfigDef, ConfigType, UpdateMode, value_text
from penstock.model.config.groups import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS, group_values
from penstock.model.config.settings import BrokerSettings, overlay, read_values, with_node_id
from penstock.model.config.topic import TOPIC_CONFIGS, parse_overrides, topic_defaults
from penstock.model.errors import INVALID_REQUEST, Refused


class ConfigSource(IntEnum):
    """Where a value comes from, with DescribeConfigs' codes."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One entry of a DescribeConfigs reply. `value` is None for a secret and where there is no value."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: ConfigType
    documentation: str | None
    synonyms: tuple[ConfigSynonym, ...]

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT


class ConfigDescriber:
    """Describes configs over fixed layers of broker configs. Make one per request, not one per resource."""

    def __init__(
        self, dynamic_broker: Mapping[str, str], dynamic_default: Mapping[str, str], static: Mapping[str, str]
    ) -> None:
        self._dynamic_broker = dynamic_broker
        self._dynamic_default = dynamic_default
        self._static = with_node_id(static)

    @cached_property
    def _broker(self) -> BrokerSettings:
        properties = overlay(overlay(self._static, self._dynamic_default), self._dynamic_broker)
        # Whatever cannot be read keeps its default: to describe must work also when a stored value is bad.
        return BrokerSettings(properties, read_values(properties, []))

    def topic(self, overrides: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
        """The entries of a topic, by name; only of `names` if given."""
        values = {**topic_defaults(self._broker), **parse_overrides(overrides)}
        return [
            self._overridable(row, value_text(values[row.name]), row.name in overrides, ConfigSource.TOPIC)
            for row in _chosen(TOPIC_CONFIGS, overrides, names)
        ]

    def group(self, overrides: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
        """The entries of a group, by name; only of `names` if given."""
        values = group_values(overrides, self._broker)
        entries = []
        for row in _chosen(GROUP_CONFIGS, overrides, names):
            entry = self._overridable(row, value_text(values[row.name]), row.name in overrides, ConfigSource.GROUP)
            if not row.synonyms:
                own_default = ConfigSynonym(row.name, row.default_text, ConfigSource.DEFAULT)
                entry = entry._replace(synonyms=(*entry.synonyms, own_default))
            entries.append(entry)
        return entries

    def client_metrics(self, overrides: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
        """The entries of a client metrics subscription, by name; only of `names` if given."""
        return [
            self._overridable(
                row,
                value_text(row.parse(overrides[row.name])) if row.name in overrides else row.default_text,
                row.name in overrides,
                ConfigSource.CLIENT_METRICS,
            )
            for row in _chosen(CLIENT_METRICS_CONFIGS, overrides, names)
        ]

    def _overridable(self, row: ConfigDef, value: str | None, overridden: bool, source: ConfigSource) -> ConfigEntry:
        synonyms = self._layers(row.synonyms[0].name, hidden=False) if row.synonyms else ()
        if overridden:
            synonyms = (ConfigSynonym(row.name, value, source), *synonyms)
        strongest = synonyms[0].source if synonyms else ConfigSource.DEFAULT
        return ConfigEntry(row.name, value, strongest, False, False, row.type, row.doc, synonyms)

    def broker(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """The entries of this broker: every public property, and whatever else was set."""
        described = {name for name, row in BROKER_CONFIGS.items() if not row.internal} | set(self._broker.properties)
        return [self._of_broker(name) for name in sorted(described) if not names or name in names]

    def _of_broker(self, name: str) -> ConfigEntry:
        row = BROKER_CONFIGS.get(name)
        value = value_text(self._broker[name]) if row is not None else self._broker.properties[name]
        return self._broker_entry(name, value, self._layers(name, hidden=_secret(name)))

    def broker_default(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """The entries of the cluster-wide broker config: only what was set there, as it was set."""
        return [
            self._broker_entry(name, text, self._default_layer(name))
            for name, text in sorted(self._dynamic_default.items())
            if not names or name in names
        ]

    def _default_layer(self, name: str) -> tuple[ConfigSynonym, ...]:
        layers = self._layers(name, hidden=_secret(name))
        return tuple(synonym for synonym in layers if synonym.source is ConfigSource.DYNAMIC_DEFAULT_BROKER)

    def _broker_entry(self, name: str, value: str | None, synonyms: tuple[ConfigSynonym, ...]) -> ConfigEntry:
        row = broker_definition(name)
        return ConfigEntry(
            name,
            None if _secret(name) else value,
            synonyms[0].source if synonyms else ConfigSource.DEFAULT,
            _fixed(name),
            _secret(name),
            row.type if row is not None else ConfigType.UNKNOWN,
            row.doc if row is not None else None,
            synonyms,
        )

    def _layers(self, name: str, *, hidden: bool) -> tuple[ConfigSynonym, ...]:
        """Who supplies `name`, the strongest first.

        The list begins where the name itself first stands: a file that says log.retention.hours does not make
        log.retention.ms a configured property.
        """
        names = broker_synonyms(name)
        found = [
            ConfigSynonym(synonym, None if hidden else layer[synonym], source)
            for layer, source in (
                (self._dynamic_broker, ConfigSource.DYNAMIC_BROKER),
                (self._dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
                (self._static, ConfigSource.STATIC_BROKER),
            )
            for synonym in names
            if synonym in layer
        ]
        for synonym in names:
            row = BROKER_CONFIGS.get(synonym)
            if row is not None and (default := row.default_text) is not None:
                found.append(ConfigSynonym(synonym, None if hidden else default, ConfigSource.DEFAULT))
        start = next((at for at, synonym in enumerate(found) if synonym.name == name), len(found))
        return tuple(found[start:])


def describe_topic(
    overrides: Mapping[str, str],
    dynamic_broker: Mapping[str, str],
    dynamic_default: Mapping[str, str],
    static: Mapping[str, str],
) -> list[ConfigEntry]:
    """The entries of one topic; for several use one `ConfigDescriber`."""
    return ConfigDescriber(dynamic_broker, dynamic_default, static).topic(overrides)


def describe_broker(
    dynamic_broker: Mapping[str, str], dynamic_default: Mapping[str, str], static: Mapping[str, str]
) -> list[ConfigEntry]:
    """The entries of one broker."""
    return ConfigDescriber(dynamic_broker, dynamic_default, static).broker()


def validate_broker_configs(configs: Mapping[str, str], *, per_broker: bool) -> None:
    """Refused with INVALID_REQUEST unless a running broker, or with `per_broker` false all of them, may take these.

    Names nobody knows are let through, as Kafka does: they may belong to a plug-in.
    """
    if fixed := [name for name in configs if update_mode(name) is UpdateMode.READ_ONLY]:
        raise Refused(INVALID_REQUEST, f"These configs cannot change while the broker runs: {', '.join(fixed)}")
    if bare := [name for name in configs if name in NEEDS_LISTENER_PREFIX]:
        why = "These configs can change only for one listener, with the prefix listener.name.<name>."
        raise Refused(INVALID_REQUEST, f"{why} : {', '.join(bare)}")
    if not per_broker and (own := [name for name in configs if update_mode(name) is UpdateMode.PER_BROKER]):
        raise Refused(INVALID_REQUEST, f"These configs need a broker id, they differ by broker: {', '.join(own)}")
    for name, text in configs.items():
        if (row := broker_definition(name)) is not None:
            try:
                row.parse(text)
            except Refused as refused:
                raise Refused(INVALID_REQUEST, refused.why) from None


def _chosen(
    table: Mapping[str, ConfigDef], overrides: Mapping[str, str], names: Collection[str] | None
) -> list[ConfigDef]:
    visible = (row for row in table.values() if not row.internal or row.name in overrides)
    return sorted((row for row in visible if not names or row.name in names), key=lambda row: row.name)


def _secret(name: str) -> bool:
    """A name nobody knows may hold a secret of a plug-in, so it counts as one."""
    row = broker_definition(name)
    return row is None or row.sensitive


def _fixed(name: str) -> bool:
    """What DescribeConfigs calls read-only: also a name with a listener prefix, although it can be altered."""
    row = broker_definition(name)
    return row is None or row.name != name or row.update_mode is UpdateMode.READ_ONLY
