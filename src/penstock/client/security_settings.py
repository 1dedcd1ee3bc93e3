"""How a client makes itself safe: TLS, a login, or both, by Java's names or by a few short ones.

Short names say what is meant and the protocol follows: `cafile` alone is SSL, `username` with it SASL_SSL. A name and
a password without `cafile` go to loopback addresses as they are, and anywhere else over TLS that trusts the system's
authorities. Java's names mean what they mean there, so `security_protocol` has to be given with them.

Secrets are `Secret`s: no text, log or error shows them. Settings that are pickled carry them along, because whoever
unpickles them has to log in.
"""

# ruff: noqa: RUF009 - `setting` makes a field
from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from penstock.client.declaring import any_text, names, optional_text, secret, setting
from penstock.client.errors import BadSetting
from penstock.model.errors import PenstockError
from penstock.model.secret import Secret
from penstock.transport.dial_security import PLAINTEXT, PROTOCOLS, SASL_PLAINTEXT, SASL_SSL, SSL, has_sasl, has_tls

if TYPE_CHECKING:
    from penstock.transport.dial_security import DialSecurity
    from penstock.transport.login import Credentials
    from penstock.transport.tls.settings import TlsSettings

DEFAULT_MECHANISM: Final = "SCRAM-SHA-512"
_OF_TRUST: Final = ("ssl_truststore_location", "ssl_truststore_certificates")
_OF_CERTIFICATE: Final = ("ssl_keystore_location", "ssl_keystore_key", "ssl_keystore_certificate_chain")
_OF_TOKENS: Final = (
    "sasl_oauthbearer_token_endpoint_url",
    "sasl_oauthbearer_client_credentials_client_id",
    "sasl_oauthbearer_client_credentials_client_secret",
    "sasl_oauthbearer_scope",
)
STANDS_FOR: Final = {
    "username": ("sasl_jaas_config", *_OF_TOKENS),
    "token_provider": ("username", "password", "mechanism", "sasl_jaas_config", *_OF_TOKENS),
    "sasl_jaas_config": ("username", "password"),
    "cafile": (*_OF_TRUST, "ssl_truststore_type", "ssl_truststore_password"),
    "certfile": (*_OF_CERTIFICATE, "ssl_keystore_type", "ssl_keystore_password"),
}
"""A keyword, and what of a file it takes the place of."""

Settings = TypeVar("Settings", bound="SecuritySettings")


def _protocol(given: Any) -> str:
    if not isinstance(given, str) or given.upper() not in PROTOCOLS:
        raise ValueError(" or ".join(repr(each) for each in PROTOCOLS))
    return given.upper()


def _mechanism(given: Any) -> str | None:
    if given is None:
        return None
    from penstock.transport.login import MECHANISMS

    if not isinstance(given, str) or given.upper() not in MECHANISMS:
        raise ValueError(" or ".join(repr(each) for each in MECHANISMS))
    return given.upper()


def _function(given: Any) -> Any:
    if given is not None and not callable(given):
        raise ValueError("a function without arguments that returns an access token, or is awaited for one")
    return given


def _list(given: Any) -> tuple[str, ...]:
    return () if given in ("", ()) else names(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """What every client has to make itself safe."""

    client_config: str | None = setting(
        None, optional_text, "A client.properties, as Java's tools read it; keywords come before what it says.", "-"
    )
    security_protocol: str = setting(PLAINTEXT, _protocol, "How to speak to brokers; what is given below may imply it.")
    username: str | None = setting(None, optional_text, "Who logs in; with a password, implies SASL.", "-")
    password: Secret | None = setting(None, secret, "The password of `username`.", "-")
    mechanism: str | None = setting(
        None, _mechanism, f"How to log in; {DEFAULT_MECHANISM} if `username` is given.", "sasl.mechanism"
    )
    cafile: str | None = setting(None, optional_text, "PEM file of the authorities to trust; implies TLS.", "-")
    certfile: str | None = setting(
        None, optional_text, "PEM file of our certificate and its chain, with its key unless `keyfile` has it.", "-"
    )
    keyfile: str | None = setting(None, optional_text, "PEM file of the key of `certfile`.", "-")
    token_provider: Callable[[], str | Awaitable[str]] | None = setting(
        None, _function, "Gives an access token, called at a login that needs one; implies SASL by OAUTHBEARER.", "-"
    )
    sasl_jaas_config: Secret | None = setting(
        None, secret, "The login as a JAAS line: PLAIN, SCRAM and OAUTHBEARER modules."
    )
    sasl_oauthbearer_token_endpoint_url: str | None = setting(
        None, optional_text, "Where access tokens come from: http, https, or the file: that somebody keeps fresh."
    )
    sasl_oauthbearer_client_credentials_client_id: str | None = setting(
        None, optional_text, "Who asks for access tokens there."
    )
    sasl_oauthbearer_client_credentials_client_secret: Secret | None = setting(
        None, secret, "The secret of that client id."
    )
    sasl_oauthbearer_scope: str | None = setting(None, optional_text, "The scope that access tokens are asked for.")
    ssl_truststore_location: str | None = setting(
        None, optional_text, "File of the authorities to trust: PEM, PKCS12 or JKS; the system's if nothing is given."
    )
    ssl_truststore_type: str | None = setting(None, optional_text, "PEM, PKCS12 or JKS; None looks at the content.")
    ssl_truststore_password: Secret | None = setting(None, secret, "The password of that file.")
    ssl_truststore_certificates: Secret | None = setting(None, secret, "The authorities themselves, as PEM text.")
    ssl_keystore_location: str | None = setting(
        None, optional_text, "File of our certificate and its key: PEM, PKCS12 or JKS."
    )
    ssl_keystore_type: str | None = setting(None, optional_text, "PEM, PKCS12 or JKS; None looks at the content.")
    ssl_keystore_password: Secret | None = setting(None, secret, "The password of that file.")
    ssl_keystore_key: Secret | None = setting(None, secret, "Our key itself, as PEM text.")
    ssl_keystore_certificate_chain: Secret | None = setting(None, secret, "Our certificate itself, as PEM text.")
    ssl_key_password: Secret | None = setting(None, secret, "The password of our key.")
    ssl_enabled_protocols: tuple[str, ...] = setting(
        ("TLSv1.2", "TLSv1.3"), _list, "The versions of TLS that may be used."
    )
    ssl_cipher_suites: tuple[str, ...] = setting((), _list, "The suites that may be used; empty takes OpenSSL's.")
    ssl_endpoint_identification_algorithm: str = setting(
        "https", any_text, "Whether a certificate has to name the host that was dialled; empty switches that off."
    )

    def settle_security(self, keywords: Collection[str], given: Collection[str], hosts: Collection[str]) -> None:
        """Finds out the protocol and whether everything fits together. `keywords` of `given` are not from a file."""
        if "security_protocol" not in given:
            object.__setattr__(self, "security_protocol", self._implied(keywords, hosts))
        self._check_protocol(keywords)
        try:
            self._tls()
            self._credentials()
        except BadSetting:
            raise
        except PenstockError as wrong:
            raise BadSetting(str(wrong)) from None

    def dial_security(self) -> DialSecurity | None:
        """For the dials of one loop; None for plaintext."""
        if self.security_protocol == PLAINTEXT:
            return None
        from penstock.transport.dial_security import DialSecurity

        return DialSecurity(self._tls(), self._credentials())

    def _implied(self, keywords: Collection[str], hosts: Collection[str]) -> str:
        if self.username is not None or self.token_provider is not None:
            if self.cafile is None and self.certfile is None and all(map(_is_here, hosts)):
                return SASL_PLAINTEXT
            return SASL_SSL
        if self.cafile is not None or self.certfile is not None:
            return SSL
        for name in (*_OF_TRUST, *_OF_CERTIFICATE, "sasl_jaas_config", *_OF_TOKENS):
            if name in keywords:
                wanted = "SASL_SSL or SASL_PLAINTEXT" if name.startswith("sasl_") else "SSL or SASL_SSL"
                raise BadSetting(f"{name} needs security_protocol: {wanted}")
        return PLAINTEXT

    def _check_protocol(self, keywords: Collection[str]) -> None:
        protocol = self.security_protocol
        if not has_sasl(protocol):
            for name in ("username", "password", "token_provider", "sasl_jaas_config", *_OF_TOKENS):
                if name in keywords and getattr(self, name) is not None:
                    why = "needs a username" if name == "password" and self.username is None else "logs nobody in"
                    raise BadSetting(f"{name} is given, but {protocol} {why}; SASL_SSL does")
        if not has_tls(protocol):
            for name in ("cafile", "certfile", "keyfile", *_OF_TRUST, *_OF_CERTIFICATE):
                if name in keywords and getattr(self, name) is not None:
                    other = SASL_SSL if has_sasl(protocol) else SSL
                    raise BadSetting(f"{name} is given, but {protocol} has no TLS; {other} does")

    def _credentials(self) -> Credentials | None:
        if not has_sasl(self.security_protocol):
            return None
        from penstock.security.oauth.messages import MECHANISM as OAUTHBEARER
        from penstock.transport.login import credentials_of, password_credentials

        if self.token_provider is not None or self.mechanism == OAUTHBEARER:
            return self._bearer()
        if self.username is not None:
            if self.sasl_jaas_config is not None:
                raise BadSetting("username and sasl_jaas_config are both given; one of them must go")
            if self.password is None:
                raise BadSetting(f"username is {self.username!r}, but there is no password")
            return password_credentials(self.mechanism or DEFAULT_MECHANISM, self.username, self.password)
        if self.sasl_jaas_config is None:
            raise BadSetting(f"{self.security_protocol} needs username and password, or sasl_jaas_config")
        if self.mechanism is None:
            raise BadSetting(
                "sasl_jaas_config needs sasl_mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
            )
        return credentials_of(self.mechanism, self.sasl_jaas_config.reveal())

    def _bearer(self) -> Credentials:
        from penstock.security.oauth.messages import MECHANISM as OAUTHBEARER
        from penstock.transport.bearer import BearerProperties, bearer_credentials

        if self.username is not None or self.mechanism not in (None, OAUTHBEARER):
            other = "username" if self.username is not None else f"mechanism {self.mechanism}"
            raise BadSetting(f"{other} logs in by a password, and there is an access token; one of them must go")
        if self.token_provider is not None and self.sasl_oauthbearer_token_endpoint_url is not None:
            raise BadSetting("token_provider and sasl_oauthbearer_token_endpoint_url are both given; one must go")
        jaas = self.sasl_jaas_config
        given = BearerProperties(
            self.sasl_oauthbearer_token_endpoint_url,
            self.sasl_oauthbearer_client_credentials_client_id,
            self.sasl_oauthbearer_client_credentials_client_secret,
            self.sasl_oauthbearer_scope,
            None if jaas is None else jaas.reveal(),
        )
        return bearer_credentials(given, provide=self.token_provider)

    def _tls(self) -> TlsSettings | None:
        if not has_tls(self.security_protocol):
            return None
        from penstock.transport.tls.settings import read_settings

        given = {
            each.name.replace("_", "."): getattr(self, each.name)
            for each in fields(SecuritySettings)
            if each.name.startswith("ssl_") and getattr(self, each.name) is not None
        }
        for name, property_name, taken in (
            ("cafile", "ssl.truststore.location", _OF_TRUST),
            ("certfile", "ssl.keystore.location", _OF_CERTIFICATE),
        ):
            path = getattr(self, name)
            if path is None:
                continue
            for other in taken:
                if getattr(self, other) is not None:
                    raise BadSetting(f"{name} and {other} are both given; one of them must go")
            given[property_name] = path
        if self.keyfile is not None and self.certfile is None:
            raise BadSetting("keyfile needs certfile")
        found = read_settings(given)
        return (
            found
            if self.keyfile is None
            else replace(found, key_store=replace(found.key_store, key_location=self.keyfile))
        )

    def __reduce__(self) -> tuple[Any, ...]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        revealed = {name: each.reveal() for name, each in values.items() if isinstance(each, Secret)}
        return _unpickled, (type(self), {**values, **revealed}, tuple(revealed))


def texts_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Values of settings as the texts they can be read from again; secrets in the clear."""
    found = {}
    for name, value in values.items():
        if isinstance(value, Secret):
            found[name] = value.reveal()
        elif value is not None:
            found[name] = ",".join(value) if isinstance(value, tuple) else str(value)
    return found


def names_of_security() -> frozenset[str]:
    """The fields that have to do with TLS and logins."""
    return frozenset(each.name for each in fields(SecuritySettings))


def _unpickled(kind: type[Settings], values: dict[str, Any], secrets: tuple[str, ...]) -> Settings:
    return kind(**{**values, **{name: Secret(values[name]) for name in secrets}})


def _is_here(host: str) -> bool:
    """Whether what is sent there does not leave this machine."""
    return host in ("localhost", "::1") or (host.startswith("127.") and host.replace(".", "").isdigit())


def hosts_of(addresses: Collection[str]) -> list[str]:
    """The hosts of `host:port` texts; what is no address is found out elsewhere."""
    found = []
    for address in addresses:
        host, colon, port = address.rpartition(":")
        found.append((host if colon and port.isdigit() else address).strip("[]"))
    return found
