"""Every property of a broker or controller, and what a name means: listener prefixes, synonyms, plug-in names."""

from __future__ import annotations

import re
from typing import Final

from penstock.model.closest import did_you_mean
from penstock.model.config.definition import ConfigDef, UpdateMode, by_name
from penstock.model.config.tables.dynamic_only import DYNAMIC_ONLY
from penstock.model.config.tables.groups import GROUPS
from penstock.model.config.tables.listeners import LISTENERS
from penstock.model.config.tables.log import LOG
from penstock.model.config.tables.metrics import METRICS
from penstock.model.config.tables.node import NODE
from penstock.model.config.tables.penstock import PENSTOCK
from penstock.model.config.tables.quorum import QUORUM
from penstock.model.config.tables.remote import REMOTE
from penstock.model.config.tables.replication import REPLICATION
from penstock.model.config.tables.sasl import SASL
from penstock.model.config.tables.security import SECURITY
from penstock.model.config.tables.share import SHARE
from penstock.model.config.tables.transactions import TRANSACTIONS

BROKER_THEMES: Final = {
    "Node and topics": NODE,
    "Listeners and limits": LISTENERS,
    "Log": LOG,
    "Replication": REPLICATION,
    "Quorum and metadata": QUORUM,
    "Groups": GROUPS,
    "Share groups": SHARE,
    "Transactions": TRANSACTIONS,
    "TLS and authorization": SECURITY,
    "Logins": SASL,
    "Metrics and quotas": METRICS,
    "Tiered storage": REMOTE,
    "Penstock's own": PENSTOCK,
}
BROKER_CONFIGS: Final[dict[str, ConfigDef]] = by_name(*BROKER_THEMES.values())
DYNAMIC_ONLY_CONFIGS: Final[dict[str, ConfigDef]] = by_name(DYNAMIC_ONLY)

# Of two names in a chain the first one given wins, whatever its source; the units differ.
_CHAINS: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_CHAIN_OF: Final = {name: chain for chain in _CHAINS for name in chain} | {
    # Only one way: the scheduler's interval has a life of its own.
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}

LISTENER_PREFIX: Final = r"listener\.name\.[^.]*\.(.*)"
# These may stand behind a mechanism as well: listener.name.internal.plain.sasl.jaas.config.
_PER_MECHANISM: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
# With a listener prefix these may be set for the whole cluster; all others only for one broker.
CLUSTER_WIDE_PER_LISTENER: Final = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})
# These would change every listener at once, so a running broker takes them only with a listener prefix.
NEEDS_LISTENER_PREFIX: Final = frozenset(
    name
    for name in BROKER_CONFIGS
    if name.startswith(("ssl.keystore.", "ssl.truststore.")) or name == "ssl.key.password"
)

# Names that belong to plug-ins of Kafka. They are no part of its table, but files use them.
_PLUGIN_NAMES: Final = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
_PLUGIN_PREFIXES: Final = ("rsm.config.", "rlmm.config.", "config.providers.")

# What people's files still say, and what became of it.
_REMOVED: Final = {
    "zookeeper.connect": "there is no ZooKeeper; set process.roles and controller.quorum.voters",
    "inter.broker.protocol.version": "the level is the feature metadata.version of the cluster",
    "log.message.format.version": "only record batch format 2 is stored",
    "log.message.downconversion.enable": "old record formats are not served",
    "log.message.timestamp.difference.max.ms": (
        "use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms"
    ),
    "broker.id.generation.enable": "give every node its node.id",
    "reserved.broker.max.id": "give every node its node.id",
    "control.plane.listener.name": "controllers have listeners of their own: controller.listener.names",
    "offsets.commit.required.acks": "offset commits always wait for all in-sync replicas",
    "controlled.shutdown.max.retries": "a stopping broker asks the controller until it may go",
    "controlled.shutdown.retry.backoff.ms": "a stopping broker asks the controller until it may go",
    "leader.imbalance.per.broker.percentage": "the controller moves every leader that is not the preferred replica",
    "password.encoder.secret": "dynamic secrets are stored in the metadata log",
    "group.coordinator.new.enable": "use group.coordinator.rebalance.protocols",
    "log.cleaner.enabled": "the name is log.cleaner.enable",
}


def chain_of(name: str) -> tuple[str, ...]:
    """The names that mean the same in other units, the strongest first; the name alone if there are none."""
    return _CHAIN_OF.get(name, (name,))


def broker_synonyms(name: str) -> tuple[str, ...]:
    """The names that can supply the value of `name`, the strongest first, listener overrides included."""
    prefixed = re.fullmatch(LISTENER_PREFIX, name)
    if prefixed is None:
        return chain_of(name)
    return name, _without_mechanism(prefixed[1])


def broker_definition(name: str) -> ConfigDef | None:
    """The row for a name, also for a dynamic-only one or one behind a listener prefix; None if nobody knows it."""
    found = BROKER_CONFIGS.get(name) or DYNAMIC_ONLY_CONFIGS.get(name)
    if found is None and (prefixed := re.fullmatch(LISTENER_PREFIX, name)) is not None:
        found = BROKER_CONFIGS.get(_without_mechanism(prefixed[1]))
    return found


def update_mode(name: str) -> UpdateMode:
    """Whether a running broker takes the exact `name`. Names nobody knows are left to plug-ins, so they may change."""
    row = BROKER_CONFIGS.get(name) or DYNAMIC_ONLY_CONFIGS.get(name)
    if row is not None:
        return row.update_mode
    prefixed = re.fullmatch(LISTENER_PREFIX, name)
    if prefixed is not None and prefixed[1] not in CLUSTER_WIDE_PER_LISTENER:
        return UpdateMode.PER_BROKER
    return UpdateMode.CLUSTER_WIDE


def known_to_plugins(name: str) -> bool:
    """Whether a name outside the table is one that plug-ins of Kafka read."""
    return name in _PLUGIN_NAMES or name.startswith(_PLUGIN_PREFIXES)


def unknown_name(name: str) -> str | None:
    """What to say about a name in a file that is not a property; None when it is one."""
    if name in BROKER_CONFIGS or known_to_plugins(name):
        return None
    if name in DYNAMIC_ONLY_CONFIGS:
        return f"{name} cannot be set in a file; set it while the broker runs"
    if broker_definition(name) is not None:
        return None
    if name in _REMOVED:
        return f"{name} no longer exists: {_REMOVED[name]}"
    if name.startswith("zookeeper."):
        return f"{name} no longer exists: {_REMOVED['zookeeper.connect']}"
    return f"{name} is not a property{did_you_mean(name, BROKER_CONFIGS, least=0.8)}"


def _without_mechanism(name: str) -> str:
    return next((base for base in _PER_MECHANISM if name.endswith(base)), name)
