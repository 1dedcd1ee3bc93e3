"""Names under which settings of the client library may be given with `-X` and in profiles."""

from __future__ import annotations

from dataclasses import fields

from penstock.client.settings import (
    AdminSettings,
    CommonSettings,
    ConsumerSettings,
    ProducerSettings,
    kafka_name,
)

KINDS: tuple[type[CommonSettings], ...] = (AdminSettings, ProducerSettings, ConsumerSettings)


def names_of(kind: type[CommonSettings]) -> dict[str, str]:
    """Every name of every setting, in snake case, to the name of its keyword."""
    names = {}
    for setting in fields(kind):
        for name in (setting.name, kafka_name(setting).replace(".", "_"), *setting.metadata["also"]):
            names[name] = setting.name
    return names


def known(name: str) -> bool:
    """Whether any client has such a setting."""
    return any(name.replace(".", "_").replace("-", "_") in names_of(kind) for kind in KINDS)
