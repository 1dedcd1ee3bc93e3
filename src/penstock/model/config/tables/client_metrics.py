"""What a client metrics subscription says."""

from __future__ import annotations

from penstock.model.config.definition import ConfigDef
from penstock.model.config.tables.words import ANY_LIST, INT, LATER, LIST, MEDIUM

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
CLIENT_METRICS: tuple[ConfigDef, ...] = (
    ConfigDef(
        "interval.ms", INT, 300_000, None, MEDIUM,
        "How often matching clients push their metrics.", LATER),
    ConfigDef(
        "match", LIST, (), ANY_LIST, MEDIUM,
        "Which clients the subscription is for, as key=pattern entries; empty means all.", LATER),
    ConfigDef(
        "metrics", LIST, (), ANY_LIST, MEDIUM,
        "The name prefixes of the metrics that are pushed; * means all, empty none.", LATER),
)
# fmt: on
