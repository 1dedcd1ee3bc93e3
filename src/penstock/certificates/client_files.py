"""A user's way in, as files that clients take as they are: Java's and our own properties, and librdkafka's.

ca.pem                whom to trust
USER.properties       for Java, and for Penstock's commands and client
USER.librdkafka       for librdkafka: kcat -F, or a dictionary of its lines
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.certificates.files import write_private
from penstock.certificates.node_settings import MECHANISMS, SCRAM_MODULE, properties_text
from penstock.certificates.subjects import BadCertificate
from penstock.model.config.files import parse_properties
from penstock.model.secret import Secret
from penstock.security.jaas.entry import BadJaas
from penstock.security.jaas.logins import ScramLogin, parse_login

ADMIN: Final = "admin"
MECHANISM: Final = MECHANISMS[0]
PASSWORD_BYTES: Final = 24


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """Where a user's files are."""

    directory: Path
    user: str = ADMIN

    @property
    def java(self) -> Path:
        return self.directory / f"{self.user}.properties"

    @property
    def librdkafka(self) -> Path:
        return self.directory / f"{self.user}.librdkafka"

    @property
    def trusted(self) -> Path:
        return self.directory / "ca.pem"

    def write(self, bootstrap: Sequence[str], password: Secret) -> None:
        """Both files; one that says the same already is left alone."""
        trusted = self.trusted.absolute()
        _write(self.java, java_text(bootstrap, trusted, self.user, password))
        _write(self.librdkafka, librdkafka_text(bootstrap, trusted, self.user, password))

    def password(self) -> Secret | None:
        """What is kept in the file, or None when there is no file."""
        try:
            text = self.java.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            login = parse_login(parse_properties(text).get("sasl.jaas.config", ""), MECHANISM)
        except (BadJaas, ValueError) as broken:
            raise BadCertificate(f"{self.java}: sasl.jaas.config cannot be read: {broken}") from None
        assert isinstance(login, ScramLogin), "the mechanism is SCRAM"
        if login.password is None:
            raise BadCertificate(f"{self.java}: sasl.jaas.config has no password")
        return login.password


def new_password() -> Secret:
    import secrets

    return Secret(secrets.token_urlsafe(PASSWORD_BYTES))


def java_text(bootstrap: Sequence[str], trusted: Path, user: str, password: Secret) -> str:
    return properties_text(
        {
            "bootstrap.servers": ",".join(bootstrap),
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(trusted),
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": jaas_text(user, password),
        },
        "For any Java client: --command-config, or the properties of a producer or consumer.",
    )


def librdkafka_text(bootstrap: Sequence[str], trusted: Path, user: str, password: Secret) -> str:
    """One key=value a line. There is no way to escape anything, nor a need for it."""
    pairs = {
        "bootstrap.servers": ",".join(bootstrap),
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(trusted),
        "sasl.mechanism": MECHANISM,
        "sasl.username": user,
        "sasl.password": password.reveal(),
    }
    return "".join(f"{name}={value}\n" for name, value in pairs.items())


def jaas_text(user: str, password: Secret) -> str:
    return f"{SCRAM_MODULE} required username={_quoted(user)} password={_quoted(password.reveal())};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _write(path: Path, text: str) -> None:
    data = text.encode()
    if not path.exists() or path.read_bytes() != data:
        write_private(path, data)
