"""Names that others see: formats, the internal topic, groups."""

from __future__ import annotations

from typing import Final

TOPIC_FORMAT: Final = "penstock"
LAKE_FORMAT: Final = "penstock-lake"

MIRROR_OPTION: Final = "penstock.mirror"
"""Tells a sink where its checkpoint is copied to and who it is; pipelines set it. Secrets in it are references."""

INTERNAL_TOPIC: Final = "__penstock_spark"
"""Where queries tell how far they are, tasks what they did not find, and pipelines what is wanted of them.

One partition, JSON values. Compacted by key and kept for a week, so its end is the present and it stays small.
"""

DECISIONS_TOPIC: Final = "__penstock_decisions"
"""What exactly-once sinks have decided: which transactions hold what was made of which offsets. Compacted."""

REDRIVE_TOPIC: Final = "__penstock_redrive"
"""Which dead letters were sent back to their topics. Compacted."""

GROUP_PREFIX: Final = "spark-"


def group_of(query: str) -> str:
    """The group whose offsets show how far a query is; `query` is its name, or its id when it has none."""
    return GROUP_PREFIX + query
