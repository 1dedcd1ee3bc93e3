"""What the sampler cannot see is told, what is changed is seen soon, and what is repeated is told in sums."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.blocking import Admin, Producer
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedBroker
from tests.console.running import RunningConsole, running, settings_for

GROUP_AUTHORIZATION_FAILED = 30


@pytest.fixture(scope="module")
def slow(node: EmbeddedBroker) -> Iterator[RunningConsole]:
    """A console that looks as often as it does by default."""
    with running(settings_for(node.client_settings, every_ms=5_000)) as found:
        yield found


def test_a_group_that_cannot_be_looked_at_says_why(console: RunningConsole, node: EmbeddedBroker) -> None:
    with Admin(**node.client_settings) as admin:
        admin.create_topic("hidden", 1)
        admin.alter_group_offsets("secret", {TopicPartition("hidden", 0): 0})
    told = console.wait("groups", lambda told: told["items"] and told["items"][0]["lag"] == "0", q="secret")
    assert (told["unseen"], told["items"][0]["unseen"]) == (0, None)
    node.fail(api="OffsetFetch", code=GROUP_AUTHORIZATION_FAILED, times=1_000_000)
    try:
        told = console.wait("groups", lambda told: told["unseen"] == 1, q="secret")
        assert "secret" in told["items"][0]["unseen"]
    finally:
        node.clear_faults()
    console.wait("groups", lambda told: told["unseen"] == 0, q="secret")


def test_records_that_were_deleted_are_not_counted_for_long(slow: RunningConsole, node: EmbeddedBroker) -> None:
    """Log starts once came with the sizes of logs, once a minute."""
    with Admin(**node.client_settings) as admin:
        admin.create_topic("cut", 1)
    with Producer(**node.client_settings) as producer:
        for _ in range(10):
            producer.send("cut", b"v")
    slow.wait("topics", lambda told: told["items"] and told["items"][0]["records"] == "10", q="cut")
    slow.send("POST", "topics/cut/trim", {"before": {"0": "4"}, "confirm": "cut"})
    slow.wait("topics", lambda told: told["items"][0]["records"] == "6", q="cut", seconds=8)


def test_records_that_are_sent_again_and_again_are_one_line_of_the_log(
    console: RunningConsole, node: EmbeddedBroker
) -> None:
    with Admin(**node.client_settings) as admin:
        admin.create_topic("often", 1)
    console.wait("topics", lambda told: told["matching"] == 1, q="often")
    for _ in range(30):
        console.send("POST", "topics/often/records", {"records": [{"value": "v"}]})

    def sent() -> list[int]:
        items = console.get("log", limit=1_000)["items"]
        return [
            each["params"]["records"]
            for each in items
            if each["params"].get("action") == "send_records" and each["params"]["topic"] == "often"
        ]

    assert len(sent()) <= 3
    console.wait("log", lambda _: sum(sent()) == 30, seconds=30)
    assert len(sent()) <= 3
