"""A missing topic is told before Spark is started, with where it is named and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark.pipeline.preflight import NoBroker, check_topics, missing_topics
from tests.unit.spark.pipeline.files import flow_of


def test_missing_topics_are_named_with_their_place() -> None:
    flow = flow_of()
    assert missing_topics(flow, ["orders", "other"]) == []
    assert missing_topics(flow, ["oders"]) == [
        "/somewhere/orders.toml:7: source orders reads topic 'orders', which is not there; did you mean 'oders'?"
    ]
    (told,) = missing_topics(flow, [])
    assert told.endswith("which is not there; `penstock topic create orders` makes it")


def test_nobody_to_ask_is_said_with_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.spark.pipeline.preflight.ASK_WITHIN_MS", 300)
    with pytest.raises(NoBroker, match=r"no broker answers at 127\.0\.0\.1:1"):
        check_topics(flow_of(path=Path("/x/p.toml")).on(bootstrap="127.0.0.1:1"))
