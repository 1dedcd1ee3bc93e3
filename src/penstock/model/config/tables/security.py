"""TLS, authorization and delegation tokens."""

from __future__ import annotations

from penstock.model.config.definition import ConfigDef
from penstock.model.config.tables.words import (
    ACCEPTED,
    ACTED,
    ANY_LIST,
    BOOLEAN,
    CLASS,
    LATER,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    PER_BROKER,
    STRING,
)
from penstock.model.config.validators import OneOf, at_least

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
SECURITY: tuple[ConfigDef, ...] = (
    ConfigDef(
        "authorizer.class.name", STRING, "", None, LOW,
        "The authorizer; empty allows everything. org.apache.kafka.metadata.authorizer.StandardAuthorizer is built in: "
        "ACLs decide, super.users (principals, divided by semicolons) may do everything, and "
        "allow.everyone.if.no.acl.found opens what no ACL is about. Listeners between nodes have to authenticate.",
        ACTED),
    ConfigDef(
        "principal.builder.class", CLASS,
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", None, MEDIUM,
        "The Java class that turns a login into a principal. Kafka's default rules are built in.",
        ACCEPTED, update_mode=PER_BROKER),
    ConfigDef(
        "security.providers", STRING, None, None, LOW,
        "Java classes of security providers. They cannot be loaded here.", ACCEPTED),
    ConfigDef(
        "connections.max.reauth.ms", LONG, 0, None, MEDIUM,
        "How long a SASL login lasts before the client must log in again; 0 sets no bound.", ACTED),
    ConfigDef(
        "delegation.token.secret.key", PASSWORD, None, None, MEDIUM,
        "The secret that signs delegation tokens; the same on every broker. Without it tokens are off.", ACTED),
    ConfigDef(
        "delegation.token.max.lifetime.ms", LONG, 604_800_000, at_least(1), MEDIUM,
        "How long a delegation token can live, renewals included.", ACTED),
    ConfigDef(
        "delegation.token.expiry.time.ms", LONG, 86_400_000, at_least(1), MEDIUM,
        "How long a delegation token is good without renewal.", ACTED),
    ConfigDef(
        "delegation.token.expiry.check.interval.ms", LONG, 3_600_000, at_least(1), LOW,
        "How often expired delegation tokens are removed.", ACTED),
    ConfigDef(
        "ssl.keystore.location", STRING, None, None, MEDIUM,
        "The file with the certificate and key of the node.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.keystore.password", PASSWORD, None, None, MEDIUM,
        "The password of the key store file. Not used for PEM files.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.keystore.type", STRING, "JKS", None, MEDIUM,
        "The format of the key store: PEM, PKCS12 or JKS.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.keystore.key", PASSWORD, None, None, MEDIUM,
        "The private key itself, as PEM text.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.keystore.certificate.chain", PASSWORD, None, None, MEDIUM,
        "The certificate chain itself, as PEM text.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.key.password", PASSWORD, None, None, MEDIUM,
        "The password of the private key.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.truststore.location", STRING, None, None, MEDIUM,
        "The file with the certificates this node trusts.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.truststore.password", PASSWORD, None, None, MEDIUM,
        "The password of the trust store file. Not used for PEM files.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.truststore.type", STRING, "JKS", None, MEDIUM,
        "The format of the trust store: PEM, PKCS12 or JKS.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.truststore.certificates", PASSWORD, None, None, MEDIUM,
        "The trusted certificates themselves, as PEM text.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.client.auth", STRING, "none", OneOf(("required", "requested", "none")), MEDIUM,
        "Whether clients must, may or need not show a certificate.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), ANY_LIST, MEDIUM,
        "The TLS versions that are accepted.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.protocol", STRING, "TLSv1.3", None, MEDIUM,
        "The TLS version offered when this node dials another.", LATER, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.cipher.suites", LIST, (), ANY_LIST, MEDIUM,
        "The cipher suites that are accepted; empty takes the defaults of the TLS library.",
        ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.endpoint.identification.algorithm", STRING, "https", None, LOW,
        "How the name in a server's certificate is checked; empty turns the check off.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.principal.mapping.rules", STRING, "DEFAULT", None, LOW,
        "Rules that turn the subject of a client certificate into a short user name.", ACTED),
    ConfigDef(
        "ssl.allow.dn.changes", BOOLEAN, False, None, LOW,
        "Whether a renewed certificate may have another subject.", ACTED),
    ConfigDef(
        "ssl.allow.san.changes", BOOLEAN, False, None, LOW,
        "Whether a renewed certificate may have fewer alternative names.", ACTED),
    ConfigDef(
        "ssl.engine.factory.class", CLASS, None, None, LOW,
        "The Java class that makes TLS engines. Java plug-ins cannot be loaded here.",
        ACCEPTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.keymanager.algorithm", STRING, "SunX509", None, MEDIUM,
        "The algorithm of the Java key manager. TLS here is OpenSSL.", ACCEPTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.trustmanager.algorithm", STRING, "PKIX", None, MEDIUM,
        "The algorithm of the Java trust manager. TLS here is OpenSSL.", ACCEPTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.provider", STRING, None, None, MEDIUM,
        "The Java security provider for TLS. TLS here is OpenSSL.", ACCEPTED, update_mode=PER_BROKER),
    ConfigDef(
        "ssl.secure.random.implementation", STRING, None, None, LOW,
        "The Java random source for TLS. TLS here is OpenSSL.", ACCEPTED, update_mode=PER_BROKER),
)
# fmt: on
