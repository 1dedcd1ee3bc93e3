"""Groups at scrape: what is told of their offsets is what a client is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from penstock.server.metrics.group_metrics import lag_samples
from tests.unit.coordinators.classic.script import Script
from tests.unit.coordinators.test_offsets import commit


class Ends:
    """Every log ends at 10."""

    def end_of(self, topic: str, partition: int) -> int:
        return 10


def told(script: Script) -> set[tuple[str, str]]:
    homes: Any = [SimpleNamespace(shard=script.shard)]
    ends: Any = Ends()
    rows = [row for row in lag_samples(homes, ends) if hasattr(row, "labels") and "partition" in row.labels]
    return {(row.labels["consumergroup"], row.labels["topic"]) for row in rows}


def test_an_offset_of_a_topic_that_was_deleted_and_made_anew_has_no_lag() -> None:
    script = Script()
    commit(script, 5, topic="t", group_id="former")
    commit(script, 5, topic="u", group_id="present")
    assert told(script) == {("former", "t"), ("present", "u")}
    script.delete_topic("t")
    script.make_topic("t")
    script.reload()
    assert told(script) == {("present", "u")}
