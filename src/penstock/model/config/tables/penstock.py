"""Properties of Penstock's own; Kafka has none of them. Their names begin with `penstock.`."""

from __future__ import annotations

from penstock.model.config.definition import ConfigDef
from penstock.model.config.tables.words import (
    ACTED,
    ANY_LIST,
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    SHORT,
    STRING,
)
from penstock.model.config.validators import OneOf, at_least

# fmt: off
PENSTOCK: tuple[ConfigDef, ...] = (
    ConfigDef(
        "penstock.admin.listener", STRING, "127.0.0.1:9644", None, LOW,
        "Where /metrics, /healthz and /readyz are served, as host:port. Port 0 takes a free one; an empty value serves "
        "none of them.", ACTED),
    ConfigDef(
        "penstock.admin.security.protocol", STRING, "PLAINTEXT", OneOf(("PLAINTEXT", "SSL")), LOW,
        "SSL serves penstock.admin.listener with TLS, by the ssl.* properties, or those with the prefix "
        "listener.name.admin. that hold for it alone; so does ssl.client.auth only with the prefix.", ACTED),
    ConfigDef(
        "penstock.admin.username", STRING, "", None, LOW,
        "Who may read /metrics and /readyz, by HTTP's basic login, with penstock.admin.password. /healthz stays open, "
        "and gives reasons only to those who log in.", ACTED),
    ConfigDef(
        "penstock.admin.password", PASSWORD, None, None, LOW,
        "The password of penstock.admin.username; ${file:...} and the like refer to it.", ACTED),
    ConfigDef(
        "penstock.admin.bearer.token", PASSWORD, None, None, LOW,
        "A token that opens /metrics and /readyz, in the header Authorization: Bearer; beside a user name, or instead "
        "of one.", ACTED),
    ConfigDef(
        "penstock.audit.allowed", BOOLEAN, False, None, LOW,
        "Whether the audit also tells what was allowed, once for each operation on each thing that a connection "
        "asks for by name.", ACTED),
    ConfigDef(
        "penstock.audit.log.file", STRING, "", None, LOW,
        "The file that audit events are appended to, one JSON object a line: what was denied and by which rule, logins "
        "that failed, changes of topics, configs, ACLs, users, quotas and tokens. It is made with mode 0600, and made "
        "anew after it was moved away. An empty value writes no file.", ACTED),
    ConfigDef(
        "penstock.audit.topic.enable", BOOLEAN, False, None, LOW,
        "Whether audit events go to the topic __penstock_audit, one JSON object a record, beside the file or "
        "instead of it. The topic is made when the first event comes.", ACTED),
    ConfigDef(
        "penstock.audit.topic.num.partitions", INT, 1, at_least(1), LOW,
        "How many partitions __penstock_audit is made with. One keeps all events in the order in which they came.",
        ACTED),
    ConfigDef(
        "penstock.audit.topic.replication.factor", SHORT, 3, at_least(1), LOW,
        "How many replicas __penstock_audit is made with; as many as there are brokers when these are fewer.", ACTED),
    ConfigDef(
        "penstock.audit.topic.retention.ms", LONG, 604_800_000, at_least(-1), LOW,
        "The retention.ms that __penstock_audit is made with; -1 keeps everything.", ACTED),
    ConfigDef(
        "penstock.log.dir.hang.timeout.ms", LONG, 30_000, at_least(1_000), LOW,
        "How long a log directory may leave a call to its disk unanswered before it counts as failed: its replicas "
        "leave their in-sync sets, and others lead. A node that has no other directory ends.", ACTED),
    ConfigDef(
        "penstock.log.dir.stray.retention.ms", LONG, 604_800_000, at_least(-1), LOW,
        "How long a directory stays that was set aside (-stray) because its topic was deleted, or its replica moved, "
        "while the node was away. -1 keeps all of them until somebody removes them.", ACTED,
        update_mode=CLUSTER_WIDE),
    ConfigDef(
        "penstock.sasl.oauthbearer.allowed.urls", LIST, (), ANY_LIST, MEDIUM,
        "The addresses (http, https) that sasl.oauthbearer.*.url may name, word for word. Empty allows none.", ACTED),
    ConfigDef(
        "penstock.sasl.oauthbearer.allowed.files", LIST, (), ANY_LIST, MEDIUM,
        "The files that sasl.oauthbearer.*.url may name as file:/path, as absolute paths. Empty allows none.", ACTED),
)
# fmt: on
