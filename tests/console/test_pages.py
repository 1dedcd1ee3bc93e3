"""What pages read is what the cluster is, as its own clients tell it."""

from __future__ import annotations

from penstock.blocking import Admin, Consumer, Producer
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedBroker
from tests.console.running import RunningConsole

FAR = (1 << 62) + 1
"""A number that a browser would round."""


def filled(node: EmbeddedBroker, topic: str, records: int, partitions: int = 3) -> None:
    with Admin(**node.client_settings) as admin:
        admin.create_topic(topic, partitions, 1)
    with Producer(**node.client_settings) as producer:
        for number in range(records):
            producer.send(topic, b"v%d" % number, key=b"k%d" % number)


def test_the_overview_says_in_a_sentence_that_all_is_well(console: RunningConsole) -> None:
    told = console.wait("overview", lambda told: told["healthy"] is not None)
    assert told["healthy"] is True
    assert told["sentence"].startswith("Healthy: 1 broker,")
    assert told["trouble"] is None
    assert [row["id"] for row in told["brokers"]] == [1]


def test_numbers_of_topics_are_those_of_the_broker(console: RunningConsole, node: EmbeddedBroker) -> None:
    filled(node, "orders", 10)
    told = console.wait("topics", lambda told: any(row["records"] == "10" for row in told["items"]), q="orders")
    assert (told["matching"], told["items"][0]["partitions"]) == (1, 3)
    with Admin(**node.client_settings) as admin:
        known = admin.describe_topic("orders")
    partitions = console.get("topics/orders/partitions")["partitions"]
    assert [(each["partition"], each["end"]) for each in partitions] == [
        (each.partition, str(each.end)) for each in known.partitions
    ]
    assert console.get("topics/orders")["id"] == known.id


def test_lists_are_sorted_and_cut_where_they_are_known(console: RunningConsole, node: EmbeddedBroker) -> None:
    with Admin(**node.client_settings) as admin:
        for number in range(5):
            admin.create_topic(f"many-{number}", number + 1, 1)
    told = console.wait("topics", lambda told: told["matching"] == 5, q="MANY", sort="partitions", desc=1, limit=2)
    assert [row["name"] for row in told["items"]] == ["many-4", "many-3"]
    assert console.refusal("topics", sort="nonsense") == (400, "bad_request")
    assert console.refusal("topics", limit="-1") == (400, "bad_request")


def test_a_group_is_behind_by_what_it_has_not_read(console: RunningConsole, node: EmbeddedBroker) -> None:
    filled(node, "read", 7, partitions=1)
    with Consumer("read", group_id="app", offset_reset="earliest", **node.client_settings) as consumer:
        got = 0
        while got < 7:
            got += len(consumer.poll(timeout_ms=500))
        consumer.commit()
    with Admin(**node.client_settings) as admin:
        admin.alter_group_offsets("app", {TopicPartition("read", 0): 3})
    told = console.wait("groups", lambda told: any(row["lag"] == "4" for row in told["items"]))
    assert [row["group"] for row in told["items"]] == ["app"]
    page = console.get("groups/app")
    assert [(each["committed"], each["end"], each["lag"]) for each in page["partitions"]] == [("3", "7", "4")]
    readers = console.get("topics/read/consumers")["groups"]
    assert [(each["group"], each["lag"]) for each in readers] == [("app", "4")]
    assert console.refusal("groups/nobody") == (404, "unknown_group")


def test_offsets_beyond_what_a_browser_counts_are_told_digit_by_digit(
    console: RunningConsole, node: EmbeddedBroker
) -> None:
    filled(node, "far", 0, partitions=1)
    with Admin(**node.client_settings) as admin:
        admin.alter_group_offsets("far-away", {TopicPartition("far", 0): FAR})
    assert console.get("groups/far-away")["partitions"][0]["committed"] == str(FAR)


def test_configs_come_with_words_defaults_and_where_they_are_from(
    console: RunningConsole, node: EmbeddedBroker
) -> None:
    with Admin(**node.client_settings) as admin:
        admin.create_topic("kept", 1, 1, {"retention.ms": "9007199254740993"})
    entries = {each["name"]: each for each in console.get("topics/kept/config")["entries"]}
    kept = entries["retention.ms"]
    assert (kept["value"], kept["source"], kept["default"]) == ("9007199254740993", "topic", "604800000")
    assert (kept["unit"], kept["type"]) == ("ms", "int64")
    assert all(each["doc"] for each in entries.values())
    broker = {each["name"]: each for each in console.get("brokers/1/config")["entries"]}
    assert broker["log.retention.ms"]["doc"]
    assert all(each["value"] is None for each in broker.values() if each["sensitive"])


def test_what_does_not_exist_is_told_with_what_to_try(console: RunningConsole) -> None:
    assert console.refusal("topics/nowhere") == (404, "unknown_topic")
    assert console.refusal("topics/nowhere/partitions") == (404, "unknown_topic")
    assert console.refusal("topics/nowhere/consumers") == (404, "unknown_topic")
    assert console.refusal("brokers/99") == (404, "not_found")
    assert console.refusal("no/such/thing") == (404, "not_found")
    assert console.refusal("topics", cluster="other") == (400, "bad_request")


def test_a_cluster_without_rules_says_so(console: RunningConsole) -> None:
    told = console.get("access")
    assert (told["enabled"], told["acls"]) == (False, [])
    why = console.get("access/explain", principal="a", operation="read", resource="topic", name="t")
    assert (why["allowed"], why["by"]) == (True, None)


def test_a_tab_hears_what_happens(console: RunningConsole, node: EmbeddedBroker) -> None:
    with console.events("a-tab-of-a-browser") as events:
        assert next(events)[0] == "hello"
        with Admin(**node.client_settings) as admin:
            admin.create_topic("heard", 2, 1)
        told = next(data for name, data in events if name == "event" and data["params"].get("topic") == "heard")
        assert (told["kind"], told["params"]["partitions"]) == ("topic_created", 2)
    assert any(each["id"] == told["id"] for each in console.get("log")["items"])
    assert console.refusal("events", tab="short") == (400, "bad_request")
