"""Short names for the tables, so that a row fits on a line, and the validators that several tables share."""

from __future__ import annotations

from typing import Final

from penstock.model.config.definition import ConfigType, Effect, Importance, UpdateMode
from penstock.model.config.validators import Filled, GzipLevel, ListOf, OneOf, ThrottledReplicas

BOOLEAN: Final = ConfigType.BOOLEAN
STRING: Final = ConfigType.STRING
INT: Final = ConfigType.INT
SHORT: Final = ConfigType.SHORT
LONG: Final = ConfigType.LONG
DOUBLE: Final = ConfigType.DOUBLE
LIST: Final = ConfigType.LIST
CLASS: Final = ConfigType.CLASS
PASSWORD: Final = ConfigType.PASSWORD

HIGH: Final = Importance.HIGH
MEDIUM: Final = Importance.MEDIUM
LOW: Final = Importance.LOW

ACTED: Final = Effect.ACTED
ACCEPTED: Final = Effect.ACCEPTED
LATER: Final = Effect.LATER

PER_BROKER: Final = UpdateMode.PER_BROKER
CLUSTER_WIDE: Final = UpdateMode.CLUSTER_WIDE

ANY_LIST: Final = ListOf(empty=True)
FILLED_LIST: Final = ListOf(empty=False)
FILLED: Final = Filled()
CLEANUP: Final = ListOf(("compact", "delete"), empty=True)
CODEC: Final = OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"))
GZIP_LEVEL: Final = GzipLevel()
TIMESTAMP_TYPE: Final = OneOf(("CreateTime", "LogAppendTime"))
THROTTLED: Final = ThrottledReplicas()
