import pytest

from penstock.model.config import (
    ConfigDescriber,
    ConfigEntry,
    ConfigSource,
    ConfigType,
    describe_broker,
    describe_topic,
    validate_broker_configs,
)
from penstock.model.errors import INVALID_REQUEST, Refused

STATIC = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@h:9093",
    "log.retention.hours": "24",
    "log.segment.bytes": "2097152",
    "listener.name.plaintext.ssl.keystore.password": "secret",
}
DEFAULT = {"log.retention.ms": "7200000", "log.cleaner.threads": "2"}
OWN = {"log.flush.interval.messages": "100", "log.retention.ms": "3600000"}


def layers(entry: ConfigEntry) -> list[str]:
    return [f"{synonym.name}={synonym.value} {synonym.source.name}" for synonym in entry.synonyms]


def topic(**overrides: str) -> dict[str, ConfigEntry]:
    named = {name.replace("_", "."): text for name, text in overrides.items()}
    return {entry.name: entry for entry in describe_topic(named, OWN, DEFAULT, STATIC)}


def broker(own: dict[str, str] = OWN, default: dict[str, str] = DEFAULT) -> dict[str, ConfigEntry]:
    return {entry.name: entry for entry in describe_broker(own, default, STATIC)}


def test_a_topic_shows_every_public_property_in_order() -> None:
    entries = describe_topic({}, {}, {}, STATIC)
    assert len(entries) == 33
    assert [entry.name for entry in entries] == sorted(entry.name for entry in entries)
    assert all(entry.documentation for entry in entries)


def test_synonyms_run_from_the_topic_to_the_default() -> None:
    entry = topic(retention_ms=" 77 ")["retention.ms"]
    assert (entry.value, entry.source, entry.is_default) == ("77", ConfigSource.TOPIC, False)
    assert layers(entry) == [
        "retention.ms=77 TOPIC",
        "log.retention.ms=3600000 DYNAMIC_BROKER",
        "log.retention.ms=7200000 DYNAMIC_DEFAULT_BROKER",
        "log.retention.hours=24 STATIC_BROKER",
        "log.retention.hours=168 DEFAULT",
    ]


def test_a_weaker_spelling_alone_counts_as_the_default() -> None:
    entries = {entry.name: entry for entry in describe_topic({}, {}, {}, STATIC)}
    entry = entries["retention.ms"]
    assert (entry.value, entry.source, entry.synonyms) == ("86400000", ConfigSource.DEFAULT, ())


def test_values_from_the_file_and_without_any_source() -> None:
    entries = topic()
    assert (entries["segment.bytes"].value, entries["segment.bytes"].source) == ("2097152", ConfigSource.STATIC_BROKER)
    assert layers(entries["min.cleanable.dirty.ratio"]) == ["log.cleaner.min.cleanable.ratio=0.5 DEFAULT"]
    assert layers(entries["remote.storage.enable"]) == []
    assert entries["remote.storage.enable"].is_default


def test_an_internal_property_shows_only_when_it_was_set() -> None:
    assert topic(internal_segment_bytes="100")["internal.segment.bytes"].value == "100"
    assert "internal.segment.bytes" not in topic()


def test_only_the_names_that_were_asked_for() -> None:
    describer = ConfigDescriber(OWN, DEFAULT, STATIC)
    assert [entry.name for entry in describer.topic({}, ["retention.ms", "nope"])] == ["retention.ms"]
    assert [entry.name for entry in describer.broker(["node.id"])] == ["node.id"]


def test_a_broker_shows_every_public_property_and_what_was_set_besides() -> None:
    entries = broker()
    assert len(entries) == 356
    assert entries["broker.id"].value == "1"
    assert entries["node.id"].read_only
    assert not entries["log.segment.bytes"].read_only


def test_a_dynamic_value_pushes_the_weaker_spelling_back_to_its_default() -> None:
    hours = broker()["log.retention.hours"]
    assert (hours.value, hours.source) == ("168", ConfigSource.STATIC_BROKER)


def test_secrets_and_unknown_names_have_no_value() -> None:
    entries = broker(OWN | {"unknown.thing": "1"})
    secret = entries["listener.name.plaintext.ssl.keystore.password"]
    assert (secret.value, secret.sensitive, secret.type) == (None, True, ConfigType.PASSWORD)
    assert layers(secret) == ["listener.name.plaintext.ssl.keystore.password=None STATIC_BROKER"]
    unknown = entries["unknown.thing"]
    assert (unknown.value, unknown.sensitive, unknown.read_only, unknown.type) == (None, True, True, ConfigType.UNKNOWN)


def test_a_listener_override_has_the_property_behind_it_as_synonym() -> None:
    entry = broker(OWN | {"listener.name.plaintext.max.connections": "7"})["listener.name.plaintext.max.connections"]
    assert (entry.value, entry.type, entry.read_only) == ("7", ConfigType.INT, True)
    assert layers(entry) == [
        "listener.name.plaintext.max.connections=7 DYNAMIC_BROKER",
        "max.connections=2147483647 DEFAULT",
    ]


def test_a_broker_value_prints_typed_and_its_synonyms_as_they_were_written() -> None:
    entry = broker(default={"log.cleaner.io.max.bytes.per.second": "5"})["log.cleaner.io.max.bytes.per.second"]
    assert entry.value == "5.0"
    assert layers(entry)[0] == "log.cleaner.io.max.bytes.per.second=5 DYNAMIC_DEFAULT_BROKER"


def test_throttle_rates_show_only_when_set() -> None:
    entry = broker(default={"leader.replication.throttled.rate": "5000"})["leader.replication.throttled.rate"]
    assert (entry.value, entry.read_only, entry.type) == ("5000", False, ConfigType.LONG)
    assert "leader.replication.throttled.rate" not in broker()


def test_the_cluster_wide_config_shows_only_itself() -> None:
    entries = ConfigDescriber(OWN, DEFAULT, STATIC).broker_default()
    assert [(entry.name, entry.value, layers(entry)) for entry in entries] == [
        ("log.cleaner.threads", "2", ["log.cleaner.threads=2 DYNAMIC_DEFAULT_BROKER"]),
        ("log.retention.ms", "7200000", ["log.retention.ms=7200000 DYNAMIC_DEFAULT_BROKER"]),
    ]


def test_to_describe_works_also_when_a_stored_value_is_bad() -> None:
    assert broker({"log.cleaner.threads": "many"})["log.cleaner.threads"].value == "1"


def test_a_group_takes_defaults_from_the_broker() -> None:
    describer = ConfigDescriber({}, {}, STATIC | {"group.consumer.session.timeout.ms": "50000"})
    entries = {entry.name: entry for entry in describer.group({"share.isolation.level": "read_committed"})}
    assert len(entries) == 17
    assert layers(entries["consumer.session.timeout.ms"]) == [
        "group.consumer.session.timeout.ms=50000 STATIC_BROKER",
        "group.consumer.session.timeout.ms=45000 DEFAULT",
    ]
    assert entries["consumer.session.timeout.ms"].value == "50000"
    assert layers(entries["share.isolation.level"]) == [
        "share.isolation.level=read_committed GROUP",
        "share.isolation.level=read_uncommitted DEFAULT",
    ]


def test_a_subscription_shows_what_is_set_and_the_defaults() -> None:
    entries = ConfigDescriber({}, {}, {}).client_metrics({"metrics": "a,a"})
    assert [(entry.name, entry.value, entry.source.name) for entry in entries] == [
        ("interval.ms", "300000", "DEFAULT"),
        ("match", "", "DEFAULT"),
        ("metrics", "a", "CLIENT_METRICS"),
    ]


@pytest.mark.parametrize(
    ("configs", "per_broker", "said"),
    [
        ({"node.id": "5"}, True, "cannot change"),
        ({"log.retention.hours": "5"}, False, "cannot change"),
        ({"listeners": "PLAINTEXT://:1"}, False, "broker id"),
        ({"listener.name.a.ssl.keystore.location": "/x"}, False, "broker id"),
        ({"ssl.keystore.location": "/x"}, True, "listener.name"),
        ({"log.cleaner.threads": "abc"}, True, "not a number"),
        ({"message.max.bytes": "-5"}, False, "at least 0"),
        ({"listener.name.a.max.connections": "x"}, True, "not a number"),
    ],
)
def test_a_running_broker_takes_only_what_can_change(configs: dict[str, str], per_broker: bool, said: str) -> None:
    with pytest.raises(Refused) as caught:
        validate_broker_configs(configs, per_broker=per_broker)
    assert caught.value.error is INVALID_REQUEST
    assert said in caught.value.why


def test_a_running_broker_takes_these() -> None:
    validate_broker_configs({"listener.name.a.max.connections": "7", "log.cleaner.threads": "2"}, per_broker=False)
    validate_broker_configs({"listener.name.a.ssl.keystore.location": "/x", "own.plugin": "1"}, per_broker=True)
    validate_broker_configs({"leader.replication.throttled.rate": "5"}, per_broker=False)
