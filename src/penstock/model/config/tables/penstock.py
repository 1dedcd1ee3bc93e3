"""Properties of Penstock's own; Kafka has none of them. Their names begin with `penstock.`."""

from __future__ import annotations

from penstock.model.config.definition import ConfigDef
from penstock.model.config.tables.words import ACTED, LONG, LOW, STRING
from penstock.model.config.validators import at_least

# fmt: off
PENSTOCK: tuple[ConfigDef, ...] = (
    ConfigDef(
        "penstock.admin.listener", STRING, "127.0.0.1:9644", None, LOW,
        "Where /metrics, /healthz and /readyz are served, as host:port. Port 0 takes a free one; an empty value serves "
        "none of them.", ACTED),
    ConfigDef(
        "penstock.log.dir.hang.timeout.ms", LONG, 30_000, at_least(1_000), LOW,
        "How long a log directory may leave a call to its disk unanswered before it counts as failed: its replicas "
        "leave their in-sync sets, and others lead. A node that has no other directory ends.", ACTED),
)
# fmt: on
