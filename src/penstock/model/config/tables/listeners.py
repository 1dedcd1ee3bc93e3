"""Where the node listens, and how many and how large things may come in."""

from __future__ import annotations

from penstock.model.config.definition import INT_MAX, REQUIRED, ConfigDef
from penstock.model.config.tables.words import (
    ACCEPTED,
    ACTED,
    ANY_LIST,
    CLUSTER_WIDE,
    FILLED_LIST,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PER_BROKER,
    STRING,
)
from penstock.model.config.validators import OneOf, at_least

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
LISTENERS: tuple[ConfigDef, ...] = (
    ConfigDef(
        "listeners", LIST, ("PLAINTEXT://:9092",), FILLED_LIST, HIGH,
        "Where the node listens, as NAME://host:port entries. An empty host means all interfaces, port 0 any free "
        "port.", ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "advertised.listeners", LIST, None, FILLED_LIST, HIGH,
        "The addresses given to clients and other brokers when they differ from listeners.", ACTED),
    ConfigDef(
        "listener.security.protocol.map", STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", None, LOW,
        "Which security protocol each listener name speaks: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
        ACTED, update_mode=PER_BROKER),
    ConfigDef(
        "inter.broker.listener.name", STRING, None, None, MEDIUM,
        "The listener over which brokers talk to each other.", ACTED),
    ConfigDef(
        "security.inter.broker.protocol", STRING, "PLAINTEXT", OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT",
        "SASL_SSL")), MEDIUM,
        "The security protocol between brokers, when no inter.broker.listener.name is given.", ACTED),
    ConfigDef(
        "controller.listener.names", LIST, REQUIRED, FILLED_LIST, HIGH,
        "The listener names that belong to controllers. A broker dials the first of them.", ACTED),
    ConfigDef(
        "early.start.listeners", LIST, None, ANY_LIST, HIGH,
        "Listeners that open before the authorizer is ready. Here those for controllers always open first.", ACCEPTED),
    ConfigDef(
        "socket.request.max.bytes", INT, 104_857_600, at_least(1), HIGH,
        "The largest request frame. A bigger one closes its connection.", ACTED),
    ConfigDef(
        "socket.send.buffer.bytes", INT, 102_400, None, HIGH,
        "The send buffer of a connection; -1 leaves it to the operating system.", ACTED),
    ConfigDef(
        "socket.receive.buffer.bytes", INT, 102_400, None, HIGH,
        "The receive buffer of a connection; -1 leaves it to the operating system.", ACTED),
    ConfigDef(
        "socket.listen.backlog.size", INT, 50, at_least(1), MEDIUM,
        "How many connections may wait to be accepted on a listener.", ACTED),
    ConfigDef(
        "socket.connection.setup.timeout.ms", LONG, 10_000, None, MEDIUM,
        "How long dialling another node may take at first. The time doubles with each failure.", ACTED),
    ConfigDef(
        "socket.connection.setup.timeout.max.ms", LONG, 30_000, None, MEDIUM,
        "The longest that dialling another node may take after repeated failures.", ACTED),
    ConfigDef(
        "connections.max.idle.ms", LONG, 600_000, None, MEDIUM,
        "How long a silent connection stays open; negative means for ever.", ACTED),
    ConfigDef(
        "connection.failed.authentication.delay.ms", INT, 100, at_least(0), LOW,
        "How long the reply to a failed login is held back, to slow down guessing.", ACTED),
    ConfigDef(
        "max.connections", INT, INT_MAX, at_least(0), MEDIUM,
        "The most connections of the broker, or of one listener with its prefix. Further ones wait for a free place.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "max.connections.per.ip", INT, INT_MAX, at_least(0), MEDIUM,
        "The most connections from one address. Zero shuts out everyone without an override.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "max.connections.per.ip.overrides", STRING, "", None, MEDIUM,
        "Other limits for single hosts, as host:count entries.", ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "max.connection.creation.rate", INT, INT_MAX, at_least(0), MEDIUM,
        "The most new connections a second, of the broker or of one listener with its prefix. Further ones wait.",
        ACTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "queued.max.requests", INT, 500, at_least(1), HIGH,
        "How many requests may queue for Kafka's handler threads. Here each connection has its own bound.", ACCEPTED),
    ConfigDef(
        "queued.max.request.bytes", LONG, -1, None, MEDIUM,
        "The most bytes of unanswered requests in memory before reading pauses; -1 sets no bound.", ACTED),
    ConfigDef(
        "num.network.threads", INT, 3, at_least(1), HIGH,
        "Kafka's network threads. A Penstock broker is one event loop, so the number changes nothing.",
        ACCEPTED, update_mode=CLUSTER_WIDE),
)
# fmt: on
