"""IncrementalAlterConfigs: set, delete, append to and subtract from the configs of one resource."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

from penstock.model.config.broker import BROKER_CONFIGS, DYNAMIC_ONLY_CONFIGS
from penstock.model.config.definition import ConfigDef, ConfigType
from penstock.model.config.groups import GROUP_CONFIGS
from penstock.model.config.topic import TOPIC_CONFIGS
from penstock.model.errors import INVALID_CONFIG, INVALID_REQUEST, Refused


class ResourceKind(IntEnum):
    """What a config belongs to, with the protocol's codes."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class AlterOp(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


# Client metrics have lists too, but Kafka's controller does not know their types and so refuses to append to them.
_TABLES: Final[Mapping[ResourceKind, Mapping[str, ConfigDef]]] = {
    ResourceKind.TOPIC: TOPIC_CONFIGS,
    ResourceKind.BROKER: BROKER_CONFIGS | DYNAMIC_ONLY_CONFIGS,
    ResourceKind.GROUP: GROUP_CONFIGS,
    ResourceKind.CLIENT_METRICS: {},
}


def apply_incremental(
    current: Mapping[str, str],
    ops: Iterable[tuple[str, int, str | None]],
    kind: int,
    *,
    effective: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The overrides of a resource after `ops` of (name, operation code, value).

    Appending to what is not overridden starts from `effective`, the text in force, or from the default. The result
    is not validated: that is for `validate_topic_configs` and its likes. Refused with INVALID_REQUEST for a name
    given twice, a null value or an unknown operation, with INVALID_CONFIG for a list operation on another type.
    """
    changes = list(ops)
    _check_shape(changes)
    if kind not in _TABLES:
        raise Refused(INVALID_REQUEST, f"Configs of resource type {kind} cannot be altered")
    result = dict(current)
    for name, code, value in changes:
        op = AlterOp(code)
        if op is AlterOp.DELETE:
            result.pop(name, None)
            continue
        assert value is not None, "checked above"
        if op is AlterOp.SET:
            result[name] = value
            continue
        row = _list_row(name, op, ResourceKind(kind))
        before = result.get(name, (effective or {}).get(name, row.default_text))
        after = _merged(_entries(before or ""), value.split(","), op)
        # Removing what is not there from what was never set sets nothing.
        if name in result or after != before:
            result[name] = after
    return result


def _check_shape(changes: list[tuple[str, int, str | None]]) -> None:
    names = [name for name, _, _ in changes]
    if len(set(names)) != len(names):
        raise Refused(INVALID_REQUEST, "A config name stands twice in one request")
    for name, code, value in changes:
        if code not in tuple(AlterOp):
            raise Refused(INVALID_REQUEST, f"Unknown operation {code} for config {name}")
        if value is None and code != AlterOp.DELETE:
            raise Refused(INVALID_REQUEST, f"A config value cannot be null: {name}")


def _list_row(name: str, op: AlterOp, kind: ResourceKind) -> ConfigDef:
    row = _TABLES[kind].get(name)
    if row is None and kind is ResourceKind.BROKER:
        raise Refused(INVALID_CONFIG, f"Unknown config name: {name}")
    if row is None or row.type is not ConfigType.LIST:
        raise Refused(INVALID_CONFIG, f"{op.name} is not possible for {name}, because it is not a list")
    return row


def _entries(text: str) -> list[str]:
    return [entry for entry in text.split(",") if entry]


def _merged(entries: list[str], given: list[str], op: AlterOp) -> str:
    for entry in given:
        if op is AlterOp.APPEND and entry not in entries:
            entries.append(entry)
        elif op is AlterOp.SUBTRACT and entry in entries:
            entries.remove(entry)
    return ",".join(entries)


def check_resource_name(kind: int, name: str) -> None:
    """Refused with INVALID_REQUEST unless a resource of this kind can have this name; "" is all brokers."""
    if kind == ResourceKind.BROKER:
        if name and not (name.isascii() and name.isdigit()):
            raise Refused(INVALID_REQUEST, f"A broker is named by its id, but the name is {name!r}")
    elif kind in (ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.CLIENT_METRICS):
        if not name:
            raise Refused(INVALID_REQUEST, f"A {ResourceKind(kind).name.lower()} resource needs a name")
    else:
        raise Refused(INVALID_REQUEST, f"Configs of resource type {kind} cannot be altered")
