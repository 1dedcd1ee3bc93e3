"""Configuration with its documentation: what holds, where it comes from, what would hold if nothing were set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.client.admin import ConfigEntry
from penstock.model.config.broker import BROKER_CONFIGS
from penstock.model.config.definition import ConfigDef, ConfigType
from penstock.model.config.topic import TOPIC_CONFIGS

DEFINITIONS: Final[dict[str, Mapping[str, ConfigDef]]] = {"topic": TOPIC_CONFIGS, "broker": BROKER_CONFIGS}
_UNITS: Final = ((".ms", "ms"), (".bytes", "bytes"), (".seconds", "s"), (".minutes", "min"), (".hours", "h"))
_TYPES: Final = {
    ConfigType.BOOLEAN: "bool",
    ConfigType.INT: "int32",
    ConfigType.SHORT: "int16",
    ConfigType.LONG: "int64",
    ConfigType.DOUBLE: "double",
    ConfigType.LIST: "list",
}


def config_list(entries: Mapping[str, ConfigEntry], kind: str) -> list[dict[str, Any]]:
    """`kind` is topic or broker. Values are the broker's; words and bounds are our own where it has none."""
    definitions = DEFINITIONS[kind]
    return [_item(entries[name], definitions.get(name)) for name in sorted(entries)]


def _item(entry: ConfigEntry, known: ConfigDef | None) -> dict[str, Any]:
    kind = None if known is None else _TYPES.get(known.type, "string")
    return {
        "name": entry.name,
        "value": None if entry.sensitive else entry.value,
        "source": entry.source,
        "read_only": entry.read_only,
        "sensitive": entry.sensitive,
        "doc": entry.documentation or (known.doc if known else None),
        "default": known.default_text if known and not entry.sensitive else None,
        "allowed": (known.allowed or None) if known else None,
        "unit": next((unit for end, unit in _UNITS if entry.name.endswith(end)), None),
        "type": kind,
        "values": ["true", "false"] if kind == "bool" else None,
    }
