"""Settings: names, values, and what hangs together."""

from __future__ import annotations

import re
from typing import Any

import pytest

from penstock.client.errors import BadSetting
from penstock.client.settings import AdminSettings, CommonSettings, ConsumerSettings, ProducerSettings


def test_the_defaults_are_those_of_kafkas_clients() -> None:
    producer, consumer = ProducerSettings.of({}), ConsumerSettings.of({})
    assert (producer.acks, producer.idempotence, producer.linger_ms, producer.batch_size) == (-1, True, 5, 16_384)
    assert (producer.max_in_flight, producer.delivery_timeout_ms, producer.buffer_memory) == (5, 120_000, 33_554_432)
    assert (consumer.offset_reset, consumer.session_timeout_ms, consumer.max_poll_records) == ("latest", 45_000, 500)


def test_kafkas_names_and_ours_mean_the_same() -> None:
    ours = ProducerSettings.of(
        {"idempotence": False, "compression": "zstd", "compression_level": 7, "max_in_flight": 9}
    )
    theirs = ProducerSettings.of(
        {
            "enable_idempotence": False,
            "compression_type": "zstd",
            "compression_zstd_level": 7,
            "max_in_flight_requests_per_connection": 9,
        }
    )
    assert ours == theirs
    assert ConsumerSettings.of({"auto_offset_reset": "earliest"}) == ConsumerSettings.of({"offset_reset": "earliest"})


@pytest.mark.parametrize(("given", "acks"), [(0, 0), ("1", 1), ("all", -1), (-1, -1)])
def test_acks_are_numbers_or_all(given: Any, acks: int) -> None:
    assert ProducerSettings.of({"acks": given}).acks == acks


def test_addresses_may_be_text_or_a_list() -> None:
    assert ProducerSettings.of({"bootstrap_servers": "a:1, b:2"}).bootstrap_servers == ("a:1", "b:2")
    assert AdminSettings.of({"bootstrap_servers": ["a:1", "b:2"]}).bootstrap_servers == ("a:1", "b:2")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"linger": 5}, "did you mean 'linger_ms'"),
        ({"batch_sise": 5}, "did you mean 'batch_size'"),
        ({"linger_ms": "soon"}, "linger_ms='soon': expected a whole number"),
        ({"linger_ms": -1}, "from 0"),
        ({"linger_ms": True}, "whole number"),
        ({"acks": 2}, "0, 1 or 'all'"),
        ({"compression": "rar"}, "'none' or 'gzip'"),
        ({"compression": "gzip", "compression_level": 12}, "gzip knows"),
        ({"idempotence": True, "acks": 1}, "idempotence needs acks='all'"),
        ({"idempotence": True, "max_in_flight": 6}, "at most 5"),
        ({"delivery_timeout_ms": 10}, "linger_ms \\+ request_timeout_ms"),
        ({"enable_idempotence": True, "idempotence": True}, "both were given"),
        ({"partitioner": "random"}, "'default' or 'sticky'"),
        ({"bootstrap_servers": ""}, "at least one address"),
    ],
)
def test_what_cannot_be_is_named_with_what_was_expected(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadSetting, match=words):
        ProducerSettings.of(given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"group_protocol": "consumer", "session_timeout_ms": 1}, "the broker's to set"),
        ({"group_protocol": "consumer", "exclude_internal_topics": True}, "the broker matches patterns"),
        ({"group_remote_assignor": "uniform"}, "needs group_protocol"),
        ({"heartbeat_interval_ms": 45_000}, "less than session_timeout_ms"),
        ({"group_instance_id": "a"}, "needs a group_id"),
        ({"auto_commit": True}, "needs a group_id"),
    ],
)
def test_a_consumers_settings_fit_together(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadSetting, match=words):
        ConsumerSettings.of(given)


def test_an_admin_has_no_setting_for_metadata_which_it_never_keeps() -> None:
    with pytest.raises(BadSetting, match="of a producer and a consumer, and this is an admin"):
        AdminSettings.of({"metadata_max_age_ms": 1})
    assert ProducerSettings.of({"metadata_max_age_ms": 1}).metadata_max_age_ms == 1
    assert ConsumerSettings.of({"metadata_max_age_ms": 1}).metadata_max_age_ms == 1


@pytest.mark.parametrize("given", [{"acks": 1}, {"acks": 0}, {"max_in_flight": 6}, {"retries": 0}])
def test_a_setting_that_rules_idempotence_out_turns_it_off(given: dict[str, Any]) -> None:
    assert not ProducerSettings.of(given).idempotence


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"acks": 1}, "transactions need acks='all'"),
        ({"max_in_flight": 6}, "transactions need max_in_flight of at most 5"),
        ({"retries": 0}, "transactions need retries of at least 1"),
        ({"idempotence": False}, "transactions need idempotence=True"),
        ({"transactional_id": None, "transaction_timeout_ms": 5}, "transaction_timeout_ms needs a transactional_id"),
        ({"transactional_id": ""}, "text that is not empty"),
    ],
)
def test_what_transactions_need_is_said(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadSetting, match=words):
        ProducerSettings.of({"transactional_id": "t", **given})


def test_a_long_request_timeout_raises_the_delivery_timeout() -> None:
    assert ProducerSettings.of({"request_timeout_ms": 300_000}).delivery_timeout_ms == 300_005


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        (ConsumerSettings, "acks", "'acks' is a setting of a producer, and this is a consumer"),
        (ProducerSettings, "group_id", "'group_id' is a setting of a consumer, and this is a producer"),
        (
            ProducerSettings,
            "auto.offset.reset",
            "'auto.offset.reset' is a setting of a consumer, and this is a producer",
        ),
        (
            AdminSettings,
            "create_topics",
            "'create_topics' is a setting of a producer and a consumer, and this is an admin",
        ),
        (ProducerSettings, "linger.ms", "there is no setting 'linger.ms'; as a keyword it is linger_ms"),
    ],
)
def test_a_setting_of_another_client_is_called_so(kind: type[CommonSettings], given: str, words: str) -> None:
    with pytest.raises(BadSetting, match=re.escape(words)):
        kind.of({given: "x"})
