"""A client.properties that logs in with a delegation token, to the cluster that made it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from penstock.cli.connection import Connection

_TRUST: Final = (
    "ssl_truststore_location",
    "ssl_truststore_type",
    "ssl_truststore_password",
    "ssl_truststore_certificates",
    "ssl_enabled_protocols",
    "ssl_cipher_suites",
    "ssl_endpoint_identification_algorithm",
)
"""What is said about TLS, but for certificates of our own: the token is the login."""


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file to be written, and everything in it but the login."""

    path: Path
    properties: dict[str, str]

    def write(self, jaas_config: str) -> None:
        from penstock.certificates.files import write_private
        from penstock.certificates.node_settings import properties_text

        text = properties_text({**self.properties, "sasl.jaas.config": jaas_config}, "Logs in with a delegation token.")
        write_private(self.path, text.encode("ascii"))


def token_file(path: Path, connection: Connection) -> TokenFile:
    """As the connection speaks to its brokers. A usage error where nobody could log in, before a token is made."""
    from penstock.client.security_settings import DEFAULT_MECHANISM, texts_of
    from penstock.client.settings import AdminSettings
    from penstock.transport.dial_security import has_sasl

    settings = AdminSettings.of(connection.beside().keywords(AdminSettings))
    protocol = settings.security_protocol
    if not has_sasl(protocol):
        raise click.UsageError(f"--client-config-out needs brokers that log in by SASL; {protocol} does not")
    if not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.absolute().parent}", param_hint="--client-config-out")
    defaults = AdminSettings()
    said = {name: getattr(settings, name) for name in _TRUST if getattr(settings, name) != getattr(defaults, name)}
    trust = {name.replace("_", "."): text for name, text in texts_of(said).items()}
    location = settings.cafile or trust.get("ssl.truststore.location")
    if location is not None:
        trust["ssl.truststore.location"] = str(Path(location).absolute())
    if settings.cafile is not None:
        trust["ssl.truststore.type"] = "PEM"
    by_scram = settings.mechanism is not None and settings.mechanism.startswith("SCRAM-")
    return TokenFile(
        path,
        {
            "bootstrap.servers": connection.bootstrap,
            "security.protocol": protocol,
            **trust,
            "sasl.mechanism": str(settings.mechanism) if by_scram else DEFAULT_MECHANISM,
        },
    )
