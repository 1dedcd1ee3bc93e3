"""What a client is told of TLS and logins, and what it makes of it."""

from __future__ import annotations

import copy
import logging
import pickle
from pathlib import Path
from typing import Any

import pytest

from penstock.client.errors import BadSetting
from penstock.client.settings import AdminSettings, ConsumerSettings, ProducerSettings
from penstock.model.secret import HIDDEN, Secret
from penstock.transport.bearer import BearerCredentials, TokenEndpoint, TokenProvider
from penstock.transport.login import PasswordCredentials
from penstock.transport.web import Address
from tests.unit.transport.tls.world import authority_text, chain_text, key_text, leaf, write_private

SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="s3cret";'


def settings(**given: Any) -> ProducerSettings:
    return ProducerSettings.of(given)


@pytest.fixture
def cafile(tmp_path: Path) -> str:
    return write_private(tmp_path / "ca.pem", authority_text())


def test_nothing_said_is_plaintext() -> None:
    assert settings().security_protocol == "PLAINTEXT"
    assert settings().dial_security() is None


@pytest.mark.parametrize(
    ("given", "servers", "protocol"),
    [
        ({"cafile": "ca.pem"}, "far:9092", "SSL"),
        ({"certfile": "me.pem"}, "far:9092", "SSL"),
        ({"username": "a", "password": "b", "cafile": "ca.pem"}, "localhost:9092", "SASL_SSL"),
        ({"username": "a", "password": "b"}, "localhost:9092,127.0.0.1:9093,[::1]:9094", "SASL_PLAINTEXT"),
        ({"username": "a", "password": "b"}, "localhost:9092,far:9092", "SASL_SSL"),
        ({"username": "a", "password": "b"}, "127.evil.example:9092", "SASL_SSL"),
    ],
)
def test_short_names_imply_the_protocol(given: dict[str, str], servers: str, protocol: str) -> None:
    assert settings(bootstrap_servers=servers, **given).security_protocol == protocol


def test_a_name_and_a_password_log_in_by_the_strongest_mechanism_unless_another_is_named() -> None:
    security = settings(username="alice", password="s3cret").dial_security()
    assert security is not None
    assert security.credentials == PasswordCredentials("SCRAM-SHA-512", "alice", Secret("s3cret"))
    named = settings(username="alice", password="s3cret", mechanism="plain").dial_security()
    assert named is not None
    assert named.credentials == PasswordCredentials("PLAIN", "alice", Secret("s3cret"))


def test_javas_names_mean_what_they_mean_there(cafile: str) -> None:
    found = settings(
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_jaas_config=SCRAM,
        ssl_truststore_location=cafile,
        ssl_truststore_type="PEM",
        ssl_enabled_protocols="TLSv1.3",
        ssl_endpoint_identification_algorithm="",
    )
    security = found.dial_security()
    assert security is not None
    assert security.credentials == PasswordCredentials("SCRAM-SHA-256", "alice", Secret("s3cret"))
    assert security.tls is not None
    tls = found._tls()
    assert tls is not None
    assert (tls.trust_store.location, tls.protocols, tls.checks_host) == (cafile, ("TLSv1.3",), False)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"security_protocol": "TLS"}, "'PLAINTEXT' or 'SSL'"),
        ({"security_protocol": "SASL_SSL"}, "needs username and password"),
        ({"username": "a"}, "there is no password"),
        ({"password": "b"}, "PLAINTEXT needs a username"),
        ({"security_protocol": "SSL", "username": "a", "password": "b"}, "SSL logs nobody in; SASL_SSL does"),
        ({"security_protocol": "PLAINTEXT", "cafile": "x"}, "PLAINTEXT has no TLS; SSL does"),
        ({"security_protocol": "SASL_PLAINTEXT", "username": "a", "password": "b", "cafile": "x"}, "no TLS; SASL_SSL"),
        ({"ssl_truststore_location": "x"}, "needs security_protocol: SSL or SASL_SSL"),
        ({"sasl_jaas_config": SCRAM}, "needs security_protocol: SASL_SSL"),
        ({"security_protocol": "SASL_SSL", "sasl_jaas_config": SCRAM}, "needs sasl_mechanism"),
        ({"cafile": "x", "ssl_truststore_location": "y"}, "both given"),
        ({"username": "a", "password": "b", "sasl_jaas_config": SCRAM}, "both given"),
        ({"cafile": "x", "keyfile": "y"}, "keyfile needs certfile"),
        ({"cafile": "x", "ssl_enabled_protocols": "TLSv1.1"}, "can be broken"),
        ({"username": "a", "password": "b", "mechanism": "GSSAPI"}, "'PLAIN' or 'SCRAM-SHA-256'"),
        ({"username": "a\0", "password": "b", "mechanism": "PLAIN"}, "NUL"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_jaas_config": SCRAM}, "does not log in by"),
        ({"passwrd": "b"}, "did you mean 'password'"),
    ],
)
def test_what_contradicts_itself_is_said(given: dict[str, str], words: str) -> None:
    with pytest.raises(BadSetting, match=words):
        settings(**given)


def test_no_text_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    found = settings(username="alice", password="s3cret", ssl_key_password="k3y")
    for text in (repr(found), str(found), f"{found}", repr(found.dial_security()), repr(vars(type(found)))):
        assert "s3cret" not in text
        assert "k3y" not in text
    assert HIDDEN in repr(found)
    with pytest.raises(BadSetting) as wrong:
        settings(username="alice", password=b"s3cret")
    assert "s3cret" not in str(wrong.value)
    with pytest.raises(BadSetting) as wrong:
        settings(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_jaas_config="nonsense password=s3cret;")
    assert "s3cret" not in str(wrong.value)
    assert "s3cret" not in caplog.text


def test_settings_that_travel_take_their_secrets_along_and_still_do_not_show_them() -> None:
    found = settings(username="alice", password="s3cret", bootstrap_servers="far:9092")
    for travelled in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert travelled == found
        assert travelled.password == Secret("s3cret")
        assert "s3cret" not in repr(travelled)


# Files.


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


JAVA = f"""\
# as Kafka's tools read it
bootstrap.servers=far-1:9092,far-2:9092
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-256
sasl.jaas.config={SCRAM}
ssl.truststore.location=CAFILE
request.timeout.ms=5000
key.serializer=org.apache.kafka.common.serialization.StringSerializer
partitioner.class=org.apache.kafka.clients.producer.RoundRobinPartitioner
group.id=not-for-producers
"""


def test_a_file_for_javas_tools_is_a_file_for_every_client(tmp_path: Path, cafile: str) -> None:
    path = write(tmp_path / "client.properties", JAVA.replace("CAFILE", cafile))
    for kind in (ProducerSettings, ConsumerSettings, AdminSettings):
        found = kind.of({"bootstrap_servers": None, "client_config": path})
        assert found.bootstrap_servers == ("far-1:9092", "far-2:9092")
        assert found.request_timeout_ms == 5_000
        security = found.dial_security()
        assert security is not None
        assert security.credentials == PasswordCredentials("SCRAM-SHA-256", "alice", Secret("s3cret"))


def test_keywords_come_before_a_file(tmp_path: Path, cafile: str) -> None:
    path = write(tmp_path / "client.properties", JAVA.replace("CAFILE", "elsewhere.pem"))
    found = settings(client_config=path, bootstrap_servers="near:1", username="bob", password="b", cafile=cafile)
    assert found.bootstrap_servers == ("near:1",)
    assert found.security_protocol == "SASL_SSL"
    security = found.dial_security()
    assert security is not None
    assert security.credentials == PasswordCredentials("SCRAM-SHA-256", "bob", Secret("b"))
    tls = found._tls()
    assert tls is not None
    assert tls.trust_store.location == cafile


def test_references_lead_to_files_directories_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("password=fr0m-file\n")
    (tmp_path / "user").write_text("alice")
    monkeypatch.setenv("OUR_PROTOCOL", "SASL_PLAINTEXT")
    provider = "org.apache.kafka.common.config.provider."
    text = f"""\
config.providers=file,dir,env
config.providers.file.class={provider}FileConfigProvider
config.providers.dir.class={provider}DirectoryConfigProvider
config.providers.env.class={provider}EnvVarConfigProvider
security.protocol=${{env:OUR_PROTOCOL}}
sasl.mechanism=PLAIN
username=${{dir:{tmp_path}:user}}
password=${{file:{secrets}:password}}
"""
    path = write(tmp_path / "client.properties", text)
    security = settings(client_config=path).dial_security()
    assert security is not None
    assert security.credentials == PasswordCredentials("PLAIN", "alice", Secret("fr0m-file"))
    monkeypatch.delenv("OUR_PROTOCOL")
    with pytest.raises(BadSetting, match=r"security\.protocol: .* does not exist"):
        settings(client_config=path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "no such file"),
        ("security.protocol=TLS\n", "security_protocol='TLS': expected"),
        ("request.timeout.ms=soon\n", "request_timeout_ms='soon'"),
        ("a=\\u00\n", "line 1"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "client.properties"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadSetting, match=words) as wrong:
        settings(client_config=str(path))
    assert str(path) in str(wrong.value)


def test_a_certificate_and_its_key_may_be_two_files(tmp_path: Path, cafile: str) -> None:
    certfile = write(tmp_path / "me.pem", chain_text(leaf("bob")))
    keyfile = write_private(tmp_path / "me.key", key_text(leaf("bob")))
    security = settings(cafile=cafile, certfile=certfile, keyfile=keyfile).dial_security()
    assert security is not None
    assert security.tls is not None
    security.tls.load()


TOKENS: dict[str, Any] = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_oauthbearer_token_endpoint_url": "https://idp.example/token",
    "sasl_oauthbearer_client_credentials_client_id": "me",
    "sasl_oauthbearer_client_credentials_client_secret": "s3cret",
    "sasl_oauthbearer_scope": "read",
}


def a_token() -> str:
    return "a.b.c"


def test_access_tokens_come_from_an_endpoint_or_from_a_function() -> None:
    security = settings(**TOKENS).dial_security()
    assert security is not None
    assert isinstance(security.credentials, BearerCredentials)
    address = Address("https", "idp.example", 443, "/token")
    assert security.credentials.source == TokenEndpoint(address, "me", Secret("s3cret"), "read")
    security = settings(token_provider=a_token).dial_security()
    assert security is not None
    assert isinstance(security.credentials, BearerCredentials)
    assert security.credentials.source == TokenProvider(a_token)


def test_a_function_implies_the_protocol_as_a_name_does() -> None:
    assert settings(token_provider=a_token, bootstrap_servers="localhost:9092").security_protocol == "SASL_PLAINTEXT"
    assert settings(token_provider=a_token, bootstrap_servers="far:9092").security_protocol == "SASL_SSL"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"token_provider": "a token"}, "expected a function"),
        ({"token_provider": a_token, "username": "a", "password": "b"}, "one of them must go"),
        ({"token_provider": a_token, "mechanism": "PLAIN"}, "one of them must go"),
        ({"token_provider": a_token, "security_protocol": "SSL"}, "SSL logs nobody in"),
        ({**TOKENS, "token_provider": a_token}, "are both given"),
        ({**TOKENS, "security_protocol": "PLAINTEXT"}, "PLAINTEXT logs nobody in"),
        ({"sasl_oauthbearer_scope": "read"}, "needs security_protocol"),
        ({**TOKENS, "sasl_oauthbearer_token_endpoint_url": "ftp://x"}, "begins with http:"),
        ({"security_protocol": "SASL_SSL", "mechanism": "OAUTHBEARER"}, "where access tokens come from"),
    ],
)
def test_tokens_that_cannot_be_had_are_refused_at_once(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadSetting, match=words) as raised:
        settings(**given)
    assert "s3cret" not in str(raised.value)
