"""The settings of consumer groups, by Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.coordinators.groups.assignors import ASSIGNORS
from penstock.coordinators.groups.settings import GroupSettings
from penstock.model.config.definition import ConfigValue


class Limits(NamedTuple):
    """What may be set for a single group."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


def limits_of(settings: GroupSettings, group_id: str) -> Limits:
    """The values in force for a group."""
    values = settings.group_values(group_id)
    return Limits(
        _number(values, "consumer.session.timeout.ms"),
        _number(values, "consumer.heartbeat.interval.ms"),
        _number(values, "consumer.assignment.interval.ms"),
    )


def _number(values: Mapping[str, ConfigValue], name: str) -> int:
    value = values[name]
    assert isinstance(value, int), f"{name} is a number by its table"
    return value


def size_max(settings: GroupSettings) -> int:
    return settings.number("group.consumer.max.size")


def regex_refresh_interval_ms(settings: GroupSettings) -> int:
    return settings.number("group.consumer.regex.refresh.interval.ms")


def assignor_names(settings: GroupSettings) -> list[str]:
    """The assignors that members may ask for, the default first. Classes that only Java can load drop out."""
    names = [name for name in settings.names("group.consumer.assignors") if name in ASSIGNORS]
    return names or list(ASSIGNORS)


def may_upgrade(settings: GroupSettings) -> bool:
    return _policy(settings) in ("bidirectional", "upgrade")


def may_downgrade(settings: GroupSettings) -> bool:
    return _policy(settings) in ("bidirectional", "downgrade")


def may_mix(settings: GroupSettings) -> bool:
    """Whether members of the classic protocol may be in a consumer group at all."""
    return _policy(settings) != "disabled"


def _policy(settings: GroupSettings) -> str:
    return settings.text("group.consumer.migration.policy").lower()
