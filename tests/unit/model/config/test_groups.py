import pytest

from penstock.model.config import group_values, validate_client_metrics_configs, validate_group_configs
from penstock.model.errors import INVALID_CONFIG, INVALID_REQUEST, ErrorCode, Refused


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"nope": "1"}, "Unknown group config name: nope"),
        ({"consumer.session.timeout.ms": "5"}, "at least group.consumer.min.session.timeout.ms, 45000"),
        ({"consumer.session.timeout.ms": "500000"}, "at most group.consumer.max.session.timeout.ms, 60000"),
        ({"consumer.heartbeat.interval.ms": "15001"}, "group.consumer.max.heartbeat.interval.ms"),
        ({"consumer.assignment.interval.ms": "16000"}, "group.consumer.max.assignment.interval.ms"),
        ({"share.record.lock.duration.ms": "5"}, "at least 1000"),
        ({"share.record.lock.duration.ms": "99999"}, "group.share.max.record.lock.duration.ms"),
        ({"share.delivery.count.limit": "11"}, "group.share.max.delivery.count.limit"),
        ({"streams.num.standby.replicas": "3"}, "group.streams.max.standby.replicas"),
        ({"share.isolation.level": "x"}, "read_committed"),
    ],
)
def test_a_group_stays_within_the_brokers_bounds(overrides: dict[str, str], said: str) -> None:
    with pytest.raises(Refused) as caught:
        validate_group_configs(overrides)
    assert caught.value.error is INVALID_CONFIG
    assert said in caught.value.why


def test_heartbeats_come_more_often_than_sessions_end() -> None:
    broker = {"group.consumer.max.heartbeat.interval.ms": 60_000}
    with pytest.raises(Refused, match=r"less than consumer\.session"):
        validate_group_configs({"consumer.heartbeat.interval.ms": "45000"}, broker)


def test_a_group_takes_what_it_does_not_set_from_the_broker() -> None:
    values = group_values({"share.auto.offset.reset": "earliest"}, {"group.share.session.timeout.ms": 50_000})
    assert values["share.session.timeout.ms"] == 50_000
    assert values["share.auto.offset.reset"] == "earliest"
    assert values["consumer.heartbeat.interval.ms"] == 5_000


@pytest.mark.parametrize(
    "overrides",
    [
        {"interval.ms": "100"},
        {"match": "client_id=a.*"},
        {"match": " client_id = a "},
        {"match": ""},
        {"match": "client_id=a,client_source_port=1"},
        {"metrics": "org.apache.kafka.,x"},
    ],
)
def test_a_subscription_may_say_this(overrides: dict[str, str]) -> None:
    validate_client_metrics_configs(overrides)


@pytest.mark.parametrize(
    ("overrides", "error"),
    [
        ({"interval.ms": "50"}, INVALID_REQUEST),
        ({"interval.ms": "3600001"}, INVALID_REQUEST),
        ({"interval.ms": "abc"}, INVALID_CONFIG),
        ({"nope": "1"}, INVALID_REQUEST),
        ({"match": "foo=a"}, INVALID_CONFIG),
        ({"match": "client_id"}, INVALID_CONFIG),
        ({"match": "client_id=a("}, INVALID_CONFIG),
        ({"match": "client_id=a=b"}, INVALID_CONFIG),
    ],
)
def test_a_subscription_may_not_say_that(overrides: dict[str, str], error: ErrorCode) -> None:
    with pytest.raises(Refused) as caught:
        validate_client_metrics_configs(overrides)
    assert caught.value.error is error
