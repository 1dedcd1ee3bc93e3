"""Logins: SASL mechanisms, OAuth and Kerberos."""

from __future__ import annotations

from penstock.model.config.definition import ConfigDef
from penstock.model.config.tables.words import (
    ACCEPTED,
    ACTED,
    ANY_LIST,
    BOOLEAN,
    CLASS,
    DOUBLE,
    HIGH,
    INT,
    LATER,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    PER_BROKER,
    SHORT,
    STRING,
)
from penstock.model.config.validators import OneOf, between

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
SASL: tuple[ConfigDef, ...] = (
    ConfigDef(
        "sasl.enabled.mechanisms", LIST, ("GSSAPI",), ANY_LIST, MEDIUM,
        "The login mechanisms offered to clients: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER.",
        ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", None, MEDIUM,
        "The mechanism with which brokers log in to each other.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "sasl.mechanism.controller.protocol", STRING, "GSSAPI", None, HIGH,
        "The mechanism with which brokers log in to controllers.", ACTED),
    ConfigDef(
        "sasl.jaas.config", PASSWORD, None, None, MEDIUM,
        "Login module and options for one listener and mechanism, in JAAS form.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "sasl.server.max.receive.size", INT, 524_288, None, MEDIUM,
        "The largest request that is read before a client has logged in.", ACTED),
    ConfigDef(
        "sasl.server.callback.handler.class", CLASS, None, None, MEDIUM,
        "The Java class that checks logins. None is loaded here; Kafka's own for OAUTHBEARER are known by name: "
        "the unsecured one believes tokens that nobody signed.", ACTED),
    ConfigDef(
        "sasl.client.callback.handler.class", CLASS, None, None, MEDIUM,
        "The Java class that supplies credentials when this node dials another.", ACCEPTED),
    ConfigDef(
        "sasl.login.callback.handler.class", CLASS, None, None, MEDIUM,
        "The Java class that supplies credentials for a login module.", ACCEPTED),
    ConfigDef(
        "sasl.login.class", CLASS, None, None, MEDIUM,
        "The Java class that keeps a login fresh.", ACCEPTED),
    ConfigDef(
        "sasl.login.connect.timeout.ms", INT, None, None, LOW,
        "How long connecting to an outside identity provider may take. Here a whole answer has 10 s.", ACCEPTED),
    ConfigDef(
        "sasl.login.read.timeout.ms", INT, None, None, LOW,
        "How long the answer of an outside identity provider may take. Here a whole answer has 10 s.", ACCEPTED),
    ConfigDef(
        "sasl.login.refresh.window.factor", DOUBLE, 0.8, None, MEDIUM,
        "The share of a credential's life after which it is refreshed.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "sasl.login.refresh.window.jitter", DOUBLE, 0.05, None, MEDIUM,
        "The largest random share added to the refresh time.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "sasl.login.refresh.min.period.seconds", SHORT, 60, None, MEDIUM,
        "The least time before a credential is refreshed.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "sasl.login.refresh.buffer.seconds", SHORT, 300, None, MEDIUM,
        "How much time is kept free between refresh and expiry.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "sasl.login.retry.backoff.ms", LONG, 100, None, LOW,
        "How long a login at an identity provider that failed waits at first.", ACTED),
    ConfigDef(
        "sasl.login.retry.backoff.max.ms", LONG, 10_000, None, LOW,
        "The longest wait before a login at an identity provider is tried again.", ACTED),
    ConfigDef(
        "sasl.kerberos.service.name", STRING, None, None, MEDIUM,
        "The Kerberos service name of the brokers. Kerberos is not offered here.", ACCEPTED, update_mode=PER_BROKER),
    ConfigDef(
        "sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", None, MEDIUM,
        "The path of the Kerberos kinit command.", ACCEPTED, update_mode=PER_BROKER),
    ConfigDef(
        "sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, None, MEDIUM,
        "The share of a Kerberos ticket's life after which it is renewed.", ACCEPTED, update_mode=PER_BROKER),
    ConfigDef(
        "sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, None, MEDIUM,
        "The largest random share added to the time of renewal of a Kerberos ticket.",
        ACCEPTED, update_mode=PER_BROKER),
    ConfigDef(
        "sasl.kerberos.min.time.before.relogin", LONG, 60_000, None, MEDIUM,
        "The least time between two Kerberos renewals.", ACCEPTED, update_mode=PER_BROKER),
    ConfigDef(
        "sasl.kerberos.principal.to.local.rules", LIST, ("DEFAULT",), ANY_LIST, MEDIUM,
        "Rules that turn a Kerberos principal into a short user name.", ACCEPTED, update_mode=PER_BROKER),
    ConfigDef(
        "sasl.oauthbearer.jwks.endpoint.url", STRING, None, None, MEDIUM,
        "Where the keys that sign access tokens are published.", ACTED),
    ConfigDef(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, None, LOW,
        "How often the published signing keys are read again.", ACTED),
    ConfigDef(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, None, LOW,
        "How long reading the signing keys waits at first after a failure.", ACTED),
    ConfigDef(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000, None, LOW,
        "The longest wait before reading the signing keys is tried again.", ACTED),
    ConfigDef(
        "sasl.oauthbearer.token.endpoint.url", STRING, None, None, MEDIUM,
        "Where this node obtains its own access tokens.", ACTED),
    ConfigDef(
        "sasl.oauthbearer.expected.audience", LIST, (), ANY_LIST, HIGH,
        "The audiences an access token must be meant for; empty accepts any.", ACTED),
    ConfigDef(
        "sasl.oauthbearer.expected.issuer", STRING, None, None, HIGH,
        "The issuer an access token must come from.", ACTED),
    ConfigDef(
        "sasl.oauthbearer.clock.skew.seconds", INT, 30, None, LOW,
        "How far the clocks of this node and of the token's issuer may differ.", ACTED),
    ConfigDef(
        "sasl.oauthbearer.scope", STRING, None, None, MEDIUM,
        "The scope this node asks for in its own tokens.", ACTED),
    ConfigDef(
        "sasl.oauthbearer.scope.claim.name", STRING, "scope", None, LOW,
        "The claim of a token that holds its scopes.", ACTED),
    ConfigDef(
        "sasl.oauthbearer.sub.claim.name", STRING, "sub", None, LOW,
        "The claim of a token that names the user.", ACTED),
    ConfigDef(
        "sasl.oauthbearer.client.credentials.client.id", STRING, None, None, MEDIUM,
        "The client id with which this node asks for tokens.", ACTED),
    ConfigDef(
        "sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None, None, MEDIUM,
        "The secret with which this node asks for tokens.", ACTED),
    ConfigDef(
        "sasl.oauthbearer.jwt.retriever.class", CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever", None, MEDIUM,
        "The Java class that obtains tokens. Java plug-ins cannot be loaded here.", ACCEPTED),
    ConfigDef(
        "sasl.oauthbearer.jwt.validator.class", CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", None, MEDIUM,
        "The Java class that checks tokens. Java plug-ins cannot be loaded here.", ACCEPTED),
    ConfigDef(
        "sasl.oauthbearer.assertion.algorithm", STRING, "RS256", OneOf(("ES256", "RS256"), ignore_case=True), MEDIUM,
        "The algorithm that signs the assertion with which a token is requested.", LATER),
    ConfigDef(
        "sasl.oauthbearer.assertion.claim.aud", STRING, None, None, MEDIUM,
        "The audience claim of the assertion.", LATER),
    ConfigDef(
        "sasl.oauthbearer.assertion.claim.exp.seconds", INT, 300, between(0, 86_400), LOW,
        "How many seconds the assertion is good for.", LATER),
    ConfigDef(
        "sasl.oauthbearer.assertion.claim.iss", STRING, None, None, MEDIUM,
        "The issuer claim of the assertion.", LATER),
    ConfigDef(
        "sasl.oauthbearer.assertion.claim.jti.include", BOOLEAN, False, None, MEDIUM,
        "Whether the assertion carries a unique id.", LATER),
    ConfigDef(
        "sasl.oauthbearer.assertion.claim.nbf.seconds", INT, 60, between(0, 3600), LOW,
        "How many seconds before now the assertion begins to be good.", LATER),
    ConfigDef(
        "sasl.oauthbearer.assertion.claim.sub", STRING, None, None, MEDIUM,
        "The subject claim of the assertion.", LATER),
    ConfigDef(
        "sasl.oauthbearer.assertion.file", STRING, None, None, MEDIUM,
        "A file with a ready-made assertion.", LATER),
    ConfigDef(
        "sasl.oauthbearer.assertion.private.key.file", STRING, None, None, MEDIUM,
        "The file with the key that signs the assertion.", LATER),
    ConfigDef(
        "sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, None, None, MEDIUM,
        "The passphrase of the key that signs the assertion.", LATER),
    ConfigDef(
        "sasl.oauthbearer.assertion.template.file", STRING, None, None, MEDIUM,
        "A file with fixed headers and claims for the assertion.", LATER),
)
# fmt: on
