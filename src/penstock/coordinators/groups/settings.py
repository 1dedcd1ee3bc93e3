"""The settings of groups, read live: a dynamic change counts from the next look."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from penstock.model.config.broker import BROKER_CONFIGS
from penstock.model.config.definition import ConfigValue
from penstock.model.config.groups import group_values
from penstock.model.config.settings import BrokerSettings

MS_PER_MINUTE: Final = 60_000
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""How long a member that has never been given its id may wait for a join: it cannot send heartbeats meanwhile."""


class GroupSettings:
    """Broker properties by Kafka's names, and the values in force for one group.

    `number`, `text` and `names` read a broker property; `group_values` gives a group's own properties with the broker's
    defaults under them.
    """

    __slots__ = ("group_values", "names", "number", "text")

    def __init__(
        self,
        number: Callable[[str], int],
        text: Callable[[str], str],
        names: Callable[[str], tuple[str, ...]],
        group_values: Callable[[str], Mapping[str, ConfigValue]],
    ) -> None:
        self.number = number
        self.text = text
        self.names = names
        self.group_values = group_values

    @classmethod
    def fixed(
        cls, properties: Mapping[str, ConfigValue] | None = None, groups: Mapping[str, Mapping[str, str]] | None = None
    ) -> GroupSettings:
        """Kafka's defaults with `properties` over them, and overrides of single groups by their id."""
        values = {name: row.default_value for name, row in BROKER_CONFIGS.items()} | dict(properties or {})
        settings = BrokerSettings({}, values)
        overrides = groups or {}
        return cls(
            settings.number,
            settings.text,
            settings.names,
            lambda group_id: group_values(overrides.get(group_id, {}), settings),
        )

    @property
    def session_timeout_min_ms(self) -> int:
        return self.number("group.min.session.timeout.ms")

    @property
    def session_timeout_max_ms(self) -> int:
        return self.number("group.max.session.timeout.ms")

    @property
    def initial_rebalance_delay_ms(self) -> int:
        return self.number("group.initial.rebalance.delay.ms")

    @property
    def group_size_max(self) -> int:
        return self.number("group.max.size")

    @property
    def offset_metadata_max(self) -> int:
        return self.number("offset.metadata.max.bytes")

    @property
    def offsets_retention_ms(self) -> int:
        return self.number("offsets.retention.minutes") * MS_PER_MINUTE

    @property
    def offsets_check_interval_ms(self) -> int:
        return self.number("offsets.retention.check.interval.ms")
