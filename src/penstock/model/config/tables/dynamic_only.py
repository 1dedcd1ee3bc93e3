"""Broker properties that exist only as dynamic ones: a file cannot set them."""

from __future__ import annotations

from penstock.model.config.definition import LONG_MAX, ConfigDef
from penstock.model.config.tables.words import ACTED, CLUSTER_WIDE, LONG, MEDIUM
from penstock.model.config.validators import at_least

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
DYNAMIC_ONLY: tuple[ConfigDef, ...] = (
    ConfigDef(
        "leader.replication.throttled.rate", LONG, LONG_MAX, at_least(0), MEDIUM,
        "How many bytes a second leaders on this broker send to throttled followers.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "follower.replication.throttled.rate", LONG, LONG_MAX, at_least(0), MEDIUM,
        "How many bytes a second throttled followers on this broker fetch.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "replica.alter.log.dirs.io.max.bytes.per.second", LONG, LONG_MAX, at_least(0), MEDIUM,
        "How many bytes a second moves between data directories may copy.", ACTED, update_mode=CLUSTER_WIDE),
)
# fmt: on
