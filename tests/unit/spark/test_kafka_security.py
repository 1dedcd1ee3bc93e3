"""kafka.security.protocol, kafka.ssl.* and kafka.sasl.* as in Apache's connector, and where their secrets go."""

from __future__ import annotations

import pickle
from pathlib import Path

from penstock.client.settings import AdminSettings, ConsumerSettings, ProducerSettings
from penstock.model.secret import Secret
from penstock.spark.feed import Feed
from penstock.spark.source.options import SourceOptions
from penstock.spark.topic_sink.options import SinkOptions
from penstock.transport.login import PasswordCredentials

JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="s3cret";'
SECURITY = {
    "kafka.bootstrap.servers": "far:9093",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "SCRAM-SHA-512",
    "kafka.sasl.jaas.config": JAAS,
    "kafka.ssl.truststore.location": "/etc/ca.pem",
    "kafka.ssl.truststore.type": "PEM",
    "kafka.ssl.protocol": "TLSv1.3",
}
ALICE = PasswordCredentials("SCRAM-SHA-512", "alice", Secret("s3cret"))


def test_sources_and_sinks_log_in_as_apaches_do() -> None:
    read = SourceOptions.of({**SECURITY, "subscribe": "orders"}, streaming=True)
    written = SinkOptions.of({**SECURITY, "topic": "orders"})
    for kind, settings in (
        (ConsumerSettings, read.client_settings),
        (AdminSettings, read.admin_settings),
        (ProducerSettings, written.producer_settings),
    ):
        security = kind.of(settings).dial_security()
        assert security is not None
        assert security.credentials == ALICE
        assert security.tls is not None


def test_options_travel_to_workers_with_their_secrets_and_do_not_show_them() -> None:
    for options in (SourceOptions.of({**SECURITY, "subscribe": "o"}, streaming=True), SinkOptions.of(SECURITY)):
        assert "s3cret" not in repr(options)
        assert pickle.loads(pickle.dumps(options)) == options


def test_a_file_is_read_by_the_driver(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{name.removeprefix('kafka.')}={value}\n" for name, value in SECURITY.items()))
    read = SourceOptions.of({"kafka.client.config": str(path), "subscribe": "orders"}, streaming=True)
    path.unlink()
    assert read.bootstrap == "far:9093"
    security = ConsumerSettings.of(read.client_settings).dial_security()
    assert security is not None
    assert security.credentials == ALICE


def test_the_metadata_of_a_table_keeps_no_secrets() -> None:
    secrets = {"kafka.password": "s3cret", "kafka.ssl.key.password": "s3cret", "kafka.ssl.keystore.key": "s3cret"}
    feed = Feed.of_source(
        {**SECURITY, **secrets, "kafka.client.config": "/etc/c", "subscribe": "o", "value.format": "json"}
    )
    assert "s3cret" not in feed.to_property()
    assert feed.options == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.ssl.truststore.location": "/etc/ca.pem",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.protocol": "TLSv1.3",
        "kafka.client.config": "/etc/c",
        "value.format": "json",
    }
