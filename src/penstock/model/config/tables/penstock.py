"""Properties of Penstock's own; Kafka has none of them. Their names begin with `penstock.`."""

from __future__ import annotations

from penstock.model.config.definition import ConfigDef
from penstock.model.config.tables.words import ACTED, LOW, STRING

# fmt: off
PENSTOCK: tuple[ConfigDef, ...] = (
    ConfigDef(
        "penstock.admin.listener", STRING, "127.0.0.1:9644", None, LOW,
        "Where /metrics, /healthz and /readyz are served, as host:port. Port 0 takes a free one; an empty value serves "
        "none of them.", ACTED),
)
# fmt: on
