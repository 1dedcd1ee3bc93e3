"""The files that a user's clients take as they are."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from penstock.certificates.client_files import ClientFiles, java_text, librdkafka_text, new_password
from penstock.certificates.subjects import BadCertificate
from penstock.model.config.files import parse_properties
from penstock.model.secret import Secret
from penstock.security.jaas.logins import ScramLogin, parse_login

BOOTSTRAP = ["127.0.0.1:9092", "127.0.0.1:9093"]
TRUSTED = Path("/d/security/ca.pem")


def test_java_is_told_this() -> None:
    assert java_text(BOOTSTRAP, TRUSTED, "admin", Secret("pw")) == (
        "# For any Java client: --command-config, or the properties of a producer or consumer.\n"
        "bootstrap.servers=127.0.0.1:9092,127.0.0.1:9093\n"
        "security.protocol=SASL_SSL\n"
        "ssl.truststore.type=PEM\n"
        "ssl.truststore.location=/d/security/ca.pem\n"
        "sasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="admin" password="pw";\n'
    )


def test_librdkafka_is_told_this() -> None:
    assert librdkafka_text(BOOTSTRAP, TRUSTED, "admin", Secret("p=w")) == (
        "bootstrap.servers=127.0.0.1:9092,127.0.0.1:9093\n"
        "security.protocol=SASL_SSL\n"
        "ssl.ca.location=/d/security/ca.pem\n"
        "sasl.mechanism=SCRAM-SHA-512\n"
        "sasl.username=admin\n"
        "sasl.password=p=w\n"
    )


@pytest.mark.parametrize("password", ['quote"', "back\\slash", "semi;colon", "\\u0041", "a b", "Ü"])
def test_quotes_in_a_password_are_escaped_for_both_readers(password: str) -> None:
    told = parse_properties(java_text(BOOTSTRAP, TRUSTED, "admin", Secret(password)))["sasl.jaas.config"]
    assert parse_login(told, "SCRAM-SHA-512") == ScramLogin("admin", Secret(password))


def test_the_files_are_the_owners_alone_and_give_the_password_back(tmp_path: Path) -> None:
    files, password = ClientFiles(tmp_path), new_password()
    assert files.password() is None
    files.write(BOOTSTRAP, password)
    assert files.password() == password
    assert [stat.S_IMODE(path.stat().st_mode) for path in (files.java, files.librdkafka)] == [0o600, 0o600]
    assert f"ssl.truststore.location={tmp_path}/ca.pem\n" in files.java.read_text()


def test_files_that_say_the_same_are_left_alone(tmp_path: Path) -> None:
    files = ClientFiles(tmp_path)
    files.write(BOOTSTRAP, Secret("pw"))
    before = files.java.stat().st_ino, files.librdkafka.stat().st_ino
    files.write(BOOTSTRAP, Secret("pw"))
    assert (files.java.stat().st_ino, files.librdkafka.stat().st_ino) == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sasl.jaas.config=nonsense\n",
        "sasl.jaas.config=\\u00\n",
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;\n",
    ],
)
def test_a_file_without_a_password_is_named(tmp_path: Path, text: str) -> None:
    files = ClientFiles(tmp_path)
    files.java.write_text(text)
    with pytest.raises(BadCertificate, match=r"admin\.properties"):
        files.password()
