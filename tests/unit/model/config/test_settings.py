import pytest

from penstock.model.config import BadSettings, BrokerSettings, Effect, Endpoint, Voter
from penstock.model.ids import NodeId
from penstock.model.secret import Secret

BOTH = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@h:9093",
}
BROKER = BOTH | {"process.roles": "broker", "node.id": "2", "listeners": "PLAINTEXT://127.0.0.1:9092"}
CONTROLLER = BOTH | {"process.roles": "controller", "listeners": "CONTROLLER://127.0.0.1:9093"}


def problems(base: dict[str, str], **changes: str) -> str:
    with pytest.raises(BadSettings) as caught:
        load(base, **changes)
    return "\n".join(caught.value.problems)


def load(base: dict[str, str], **changes: str) -> BrokerSettings:
    """`base` with changes whose names have `_` for `.`; an empty text removes the property."""
    named = {name.replace("_", "."): text for name, text in changes.items()}
    return BrokerSettings.load({name: text for name, text in (base | named).items() if text})


def test_values_are_typed_and_defaults_are_there() -> None:
    settings = load(BOTH, log_segment_bytes="2097152", num_network_threads=" 5 ")
    assert settings["log.segment.bytes"] == 2_097_152
    assert settings["log.cleaner.min.cleanable.ratio"] == 0.5
    assert settings["auto.create.topics.enable"] is True
    assert settings.number("num.network.threads") == 5
    assert settings.text("metadata.log.dir") == ""
    assert settings.ratio("log.cleaner.io.buffer.load.factor") == 0.9
    assert settings.topic({}).segment_bytes == 2_097_152
    assert settings.topic({}) is settings.topic({})


def test_the_attributes_of_a_combined_node() -> None:
    settings = load(BOTH, log_dirs="/a, /b", broker_rack="z1")
    assert settings.node_id == 1
    assert (settings.is_broker, settings.is_controller, settings.rack) == (True, True, "z1")
    assert settings.broker_listeners == (Endpoint("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT"),)
    assert settings.controller_listeners == (Endpoint("CONTROLLER", "127.0.0.1", 9093, "PLAINTEXT"),)
    assert settings.advertised_listeners == settings.broker_listeners
    assert settings.quorum_voters == (Voter(NodeId(1), "h", 9093),)
    assert settings.inter_broker_listener_name == "PLAINTEXT"
    assert (settings.log_dirs, settings.metadata_log_dir) == (("/a", "/b"), "/a")


def test_log_dir_stands_in_for_log_dirs() -> None:
    assert load(BOTH).log_dirs == ("/tmp/kafka-logs",)
    assert load(BOTH, log_dir="/q", metadata_log_dir="/m").metadata_log_dir == "/m"


def test_broker_id_stands_in_for_node_id() -> None:
    assert load(BOTH, node_id="", broker_id="1").node_id == 1
    assert "node.id" in problems(BOTH, broker_id="5")


def test_everything_that_is_wrong_is_told_at_once() -> None:
    told = problems(BOTH, node_id="", log_segment_bytes="10", log_segment_byte="1", num_partitions="x")
    assert "node.id must be set" in told
    assert "at least 1048576" in told
    assert "did you mean log.segment.bytes?" in told
    assert "num.partitions: not a number" in told


@pytest.mark.parametrize("name", ["process.roles", "node.id", "controller.listener.names"])
def test_what_is_required_is_named(name: str) -> None:
    assert f"{name} must be set" in problems(BOTH, **{name: ""})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"process_roles": "foo"}, "broker, controller"),
        ({"controller_quorum_voters": ""}, "no controller can be found"),
        ({"controller_quorum_voters": "2@h:1"}, "must have this node, 1"),
        ({"listeners": "PLAINTEXT://:9092"}, "controller.listener.names has CONTROLLER"),
        ({"listeners": "CONTROLLER://:9093"}, "a listener of its own"),
        ({"listeners": "PLAINTEXT://:9092,CONTROLLER://:9092"}, "share 9092"),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2,CONTROLLER://:3"}, "PLAINTEXT stands twice"),
        ({"listeners": "FOO://:9092,CONTROLLER://:9093"}, "FOO has no security protocol"),
        ({"listeners": "PLAINTEXT:9092"}, "NAME://host:port"),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093"}, "cannot be dialled"),
        ({"advertised_listeners": "PLAINTEXT://h:1,SSL://h:2"}, "SSL, which is not in listeners"),
        ({"inter_broker_listener_name": "FOO"}, "FOO is not in listener.security.protocol.map"),
        ({"inter_broker_listener_name": "CONTROLLER"}, "not advertised"),
        ({"inter_broker_listener_name": "PLAINTEXT", "security_inter_broker_protocol": "PLAINTEXT"}, "only one of"),
        ({"listener_security_protocol_map": "PLAINTEXT:FOO"}, "'FOO' is not one of"),
        ({"listener_security_protocol_map": "PLAINTEXT"}, "key:value"),
        ({"early_start_listeners": "FOO"}, "early.start.listeners has FOO"),
        ({"log_roll_ms": "0"}, "log.roll.ms"),
        ({"log_roll_jitter_ms": "-1"}, "log.roll.jitter.ms"),
        ({"log_retention_minutes": "0"}, "log.retention.ms"),
        ({"log_cleaner_threads": "0"}, "log.cleaner.enable=false"),
        ({"log_cleaner_threads": "200"}, "1 MB per cleaner thread"),
        ({"cordoned_log_dirs": "/q"}, "/q"),
        ({"replica_fetch_wait_max_ms": "40000"}, "replica.socket.timeout.ms"),
        ({"replica_lag_time_max_ms": "100"}, "replica.lag.time.max.ms"),
        ({"queued_max_request_bytes": "100"}, "socket.request.max.bytes"),
        ({"max_connections_per_ip": "0"}, "max.connections.per.ip.overrides"),
        ({"max_connections_per_ip_overrides": "a b:5"}, "'a b' is not a host"),
        ({"max_connections_per_ip_overrides": "h"}, "key:value"),
        ({"connections_max_idle_ms": "50"}, "less than connections.max.idle.ms"),
        ({"group_coordinator_rebalance_protocols": "consumer"}, "classic"),
        ({"group_consumer_session_timeout_ms": "5"}, "group.consumer.min.session.timeout.ms"),
        ({"group_consumer_max_session_timeout_ms": "1000"}, "group.consumer.min.session.timeout.ms"),
        ({"group_consumer_heartbeat_interval_ms": "50000"}, "group.consumer.max.heartbeat.interval.ms"),
        ({"group_share_record_lock_duration_ms": "2000"}, "group.share.min.record.lock.duration.ms"),
        ({"group_streams_num_standby_replicas": "9"}, "group.streams.max.standby.replicas"),
        ({"group_consumer_assignors": "foo"}, "uniform, range"),
        ({"offsets_topic_compression_codec": "9"}, "4 (zstd)"),
    ],
    ids=lambda value: value if isinstance(value, str) else ",".join(f"{k}={v}" for k, v in value.items()),
)
def test_a_combined_node_is_checked_as_a_whole(changes: dict[str, str], said: str) -> None:
    assert said in problems(BOTH, **changes)


@pytest.mark.parametrize(
    ("base", "changes", "said"),
    [
        (BROKER, {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}, "no controller role"),
        (BROKER, {"controller_quorum_voters": "2@h:1"}, "no controller role"),
        (BROKER, {"listener_security_protocol_map": "PLAINTEXT:PLAINTEXT"}, "CONTROLLER is not in"),
        (BROKER, {"controller_quorum_auto_join_enable": "true"}, "controller role"),
        (CONTROLLER, {"listeners": "CONTROLLER://:9093,PLAINTEXT://:9092"}, "process.roles=controller"),
        (CONTROLLER, {"controller_quorum_voters": "5@h:1"}, "must have this node, 1"),
        (CONTROLLER, {"controller_listener_names": "CONTROLLER,B"}, "B, which is not in listeners"),
    ],
)
def test_single_roles_have_rules_of_their_own(base: dict[str, str], changes: dict[str, str], said: str) -> None:
    assert said in problems(base, **changes)


def test_single_roles_load() -> None:
    assert load(BROKER).controller_listeners == ()
    assert load(CONTROLLER).advertised_listeners == ()
    assert load(
        BROKER, controller_quorum_voters="", controller_quorum_bootstrap_servers="h:1"
    ).quorum_bootstrap_servers == (("h", 1),)


def test_listener_names_count_in_any_case_and_hosts_may_be_ipv6() -> None:
    settings = load(BOTH, listeners="plaintext://[::1]:9092,controller://:9093")
    assert settings.broker_listeners == (Endpoint("PLAINTEXT", "::1", 9092, "PLAINTEXT"),)
    assert str(settings.broker_listeners[0]) == "PLAINTEXT://[::1]:9092"


def test_one_port_can_serve_ipv4_and_ipv6_as_two_listeners() -> None:
    protocols = "A:PLAINTEXT,B:PLAINTEXT,CONTROLLER:PLAINTEXT"
    listeners = "A://127.0.0.1:9092,B://[::1]:9092,CONTROLLER://:9093"
    load(BOTH, listeners=listeners, listener_security_protocol_map=protocols, inter_broker_listener_name="A")


def test_a_wildcard_controller_takes_its_address_from_the_voters() -> None:
    settings = load(BOTH, listeners="PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9093")
    assert settings.advertised_controller_listeners == (Endpoint("CONTROLLER", "h", 9093, "PLAINTEXT"),)
    named = load(BOTH, advertised_listeners="PLAINTEXT://a:1,CONTROLLER://b:2")
    assert [str(one) for one in named.advertised_controller_listeners] == ["CONTROLLER://b:2"]


def test_brokers_must_be_able_to_log_in_to_each_other() -> None:
    sasl = {
        "listeners": "S://:9092,CONTROLLER://:9093",
        "listener_security_protocol_map": "S:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter_broker_listener_name": "S",
        "sasl_mechanism_inter_broker_protocol": "PLAIN",
    }
    assert "PLAIN" in problems(BOTH, **sasl)
    settings = load(BOTH | {"listener.name.s.sasl.enabled.mechanisms": "PLAIN"}, **sasl)
    assert settings.for_listener("S", "sasl.enabled.mechanisms") == ("PLAIN",)
    assert settings.for_listener("CONTROLLER", "sasl.enabled.mechanisms") == ("GSSAPI",)


def test_a_prefixed_property_is_checked_under_its_full_name() -> None:
    assert "configuration listener.name.a.max.connections:" in problems(
        BOTH | {"listener.name.a.max.connections": "-5"}
    )


def test_dynamic_configs_lie_over_the_file_and_push_out_weaker_spellings() -> None:
    static = load(BOTH, log_retention_hours="24")
    changed = static.with_dynamic({"log.retention.ms": "7"}, {"log.cleaner.threads": "2"})
    assert changed.topic({}).retention_ms == 7
    assert (changed["log.retention.hours"], changed["log.cleaner.threads"]) == (168, 2)
    assert static.topic({}).retention_ms == 86_400_000
    with pytest.raises(BadSettings, match="cordoned"):
        static.with_dynamic({}, {"cordoned.log.dirs": "/nope"})


def test_cordoned_directories_may_be_all_of_them() -> None:
    assert load(BOTH, log_dirs="/a,/b", cordoned_log_dirs="*").cordoned_log_dirs == ("/a", "/b")


def test_secrets_do_not_show() -> None:
    settings = load(BOTH, ssl_key_password="swordfish", super_users="User:a")
    assert settings["ssl.key.password"] == Secret("swordfish")
    assert settings["super.users"] == "User:a"
    assert "swordfish" not in repr(settings)
    assert "ssl.key.password=[hidden]" in repr(settings)


def test_lint_names_what_changes_nothing() -> None:
    given = load(BOTH, num_io_threads="4", offsets_topic_replication_factor="1", num_partitions="3").without_effect()
    assert dict(given)["num.io.threads"] is Effect.ACCEPTED
    assert "num.partitions" not in dict(given)


def test_connection_limits_by_host() -> None:
    assert load(BOTH, max_connections_per_ip_overrides="h:5, ::1:7").connections_per_ip == {"h": 5, "::1": 7}
