"""The values of a node's properties, read by property name or by typed attribute; `settings.py` makes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from penstock.model.config.broker import broker_definition
from penstock.model.config.definition import ConfigValue, Effect, value_text
from penstock.model.config.endpoints import Endpoint, listener_name, parse_endpoints, parse_pairs, protocol_map
from penstock.model.config.topic import TopicSettings, topic_defaults
from penstock.model.config.validators import host_port_parts, voter_parts
from penstock.model.ids import NodeId


class Voter(NamedTuple):
    """A controller of a fixed quorum."""

    node_id: NodeId
    host: str
    port: int


TOPIC_SETTINGS_MAX = 1_000
"""How many different settings of topics are remembered."""


class NodeValues(Mapping[str, ConfigValue]):
    """Typed values by property name, defaults included: `values["log.segment.bytes"]`. Each is fine alone.

    A name with a listener prefix is there when it was given. An instance never changes. `properties` is the text it
    was made from. Those that fit together are `BrokerSettings`.
    """

    def __init__(self, properties: Mapping[str, str], values: Mapping[str, ConfigValue]) -> None:
        self.properties: Mapping[str, str] = dict(properties)
        self._values = dict(values)

    def __getitem__(self, name: str) -> ConfigValue:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value_text(self._values.get(name))}" for name in sorted(self.properties))
        return f"{type(self).__name__}({given})"

    def number(self, name: str) -> int:
        """A property that is an integer."""
        value = self._values[name]
        assert isinstance(value, int), f"{name} is not an integer"
        return value

    def flag(self, name: str) -> bool:
        """A property that is true or false."""
        value = self._values[name]
        assert isinstance(value, bool), f"{name} is not a boolean"
        return value

    def ratio(self, name: str) -> float:
        """A property that is a double."""
        value = self._values[name]
        assert isinstance(value, float), f"{name} is not a double"
        return value

    def text(self, name: str) -> str:
        """A property that is text; empty when it has no value."""
        value = self._values[name]
        assert value is None or isinstance(value, str), f"{name} is not text"
        return value or ""

    def names(self, name: str) -> tuple[str, ...]:
        """A property that is a list; empty when it has no value."""
        value = self._values[name]
        assert value is None or isinstance(value, tuple), f"{name} is not a list"
        return value or ()

    def for_listener(self, listener: str, name: str) -> ConfigValue:
        """A property as it holds for one listener: with the prefix of the listener if that is given."""
        prefixed = f"listener.name.{listener.lower()}.{name}"
        return self._values[prefixed] if prefixed in self._values else self._values[name]

    # ------------------------------------------------------------------ who the node is

    @property
    def node_id(self) -> NodeId:
        return NodeId(self.number("node.id"))

    @property
    def process_roles(self) -> frozenset[str]:
        return frozenset(self.names("process.roles"))

    @property
    def is_broker(self) -> bool:
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.process_roles

    @property
    def rack(self) -> str | None:
        return self.text("broker.rack") or None

    # ------------------------------------------------------------------ listeners

    @cached_property
    def controller_listener_names(self) -> tuple[str, ...]:
        return tuple(name.upper() for name in self.names("controller.listener.names"))

    @cached_property
    def listener_security_protocol_map(self) -> Mapping[str, str]:
        """Security protocol by listener name. ValueError when the property is malformed.

        When nobody wrote a map and nothing asks for TLS or SASL, controller listeners are PLAINTEXT by themselves.
        """
        protocols = protocol_map(self.text("listener.security.protocol.map"))
        if "listener.security.protocol.map" in self.properties:
            return protocols
        in_use = {*self.controller_listener_names, *map(listener_name, self.names("listeners"))}
        if in_use.isdisjoint({"SSL", "SASL_PLAINTEXT", "SASL_SSL"}):
            protocols |= dict.fromkeys(self.controller_listener_names, "PLAINTEXT")
        return protocols

    @cached_property
    def listeners(self) -> tuple[Endpoint, ...]:
        """Where this node listens, brokers' and controllers' listeners alike. ValueError when malformed."""
        return parse_endpoints(self.names("listeners"), self.listener_security_protocol_map)

    @cached_property
    def controller_listeners(self) -> tuple[Endpoint, ...]:
        return tuple(endpoint for endpoint in self.listeners if endpoint.name in self.controller_listener_names)

    @cached_property
    def broker_listeners(self) -> tuple[Endpoint, ...]:
        return tuple(endpoint for endpoint in self.listeners if endpoint.name not in self.controller_listener_names)

    @cached_property
    def _given_advertised(self) -> tuple[Endpoint, ...]:
        return parse_endpoints(self.names("advertised.listeners"), self.listener_security_protocol_map)

    @cached_property
    def advertised_listeners(self) -> tuple[Endpoint, ...]:
        """What clients and other brokers are told. A host may be empty: the node then fills in its own name."""
        advertised = self._given_advertised or self.listeners
        return tuple(endpoint for endpoint in advertised if endpoint.name not in self.controller_listener_names)

    @cached_property
    def advertised_controller_listeners(self) -> tuple[Endpoint, ...]:
        """What the quorum is told. A wildcard listener takes its address from the list of voters if it is there."""
        given = {endpoint.name: endpoint for endpoint in self._given_advertised}
        return tuple(given.get(endpoint.name) or self._dialable(endpoint) for endpoint in self.controller_listeners)

    def _dialable(self, endpoint: Endpoint) -> Endpoint:
        if not endpoint.wildcard:
            return endpoint
        own = next((voter for voter in self.quorum_voters if voter.node_id == self.node_id), None)
        if own is None:
            return endpoint._replace(host="")
        return endpoint._replace(host=own.host, port=own.port)

    @property
    def inter_broker_listener_name(self) -> str:
        return (self.text("inter.broker.listener.name") or self.text("security.inter.broker.protocol")).upper()

    @cached_property
    def connections_per_ip(self) -> Mapping[str, int]:
        """max.connections.per.ip.overrides by host. ValueError when malformed."""
        name = "max.connections.per.ip.overrides"
        return {host: int(count) for host, count in parse_pairs(self.text(name), name).items()}

    # ------------------------------------------------------------------ quorum and directories

    @cached_property
    def quorum_voters(self) -> tuple[Voter, ...]:
        """The fixed quorum; empty when the quorum is found through bootstrap servers."""
        parts = map(voter_parts, self.names("controller.quorum.voters"))
        return tuple(Voter(NodeId(node_id), host, port) for node_id, host, port in parts)

    @cached_property
    def quorum_bootstrap_servers(self) -> tuple[tuple[str, int], ...]:
        """Controllers to dial first, as (host, port)."""
        return tuple(map(host_port_parts, self.names("controller.quorum.bootstrap.servers")))

    @property
    def log_dirs(self) -> tuple[str, ...]:
        return self.names("log.dirs") or self.names("log.dir")

    @property
    def cordoned_log_dirs(self) -> tuple[str, ...]:
        """The data directories that take no new partitions."""
        cordoned = self.names("cordoned.log.dirs")
        return self.log_dirs if cordoned == ("*",) else cordoned

    @property
    def metadata_log_dir(self) -> str:
        return self.text("metadata.log.dir") or self.log_dirs[0]

    # ------------------------------------------------------------------ topics

    @cached_property
    def _topic_defaults(self) -> dict[str, ConfigValue]:
        return topic_defaults(self)

    @cached_property
    def _plain_topic(self) -> TopicSettings:
        return TopicSettings.over(self._topic_defaults, {})

    def topic(self, overrides: Mapping[str, str]) -> TopicSettings:
        """The settings of a topic with these overrides; the same object for all partitions that have the same."""
        if not overrides:
            return self._plain_topic
        key = tuple(sorted(overrides.items()))
        found = self._topics.get(key)
        if found is None:
            if len(self._topics) >= TOPIC_SETTINGS_MAX:
                self._topics.clear()
            found = self._topics[key] = TopicSettings.over(self._topic_defaults, overrides)
        return found

    @cached_property
    def _topics(self) -> dict[tuple[tuple[str, str], ...], TopicSettings]:
        return {}

    def without_effect(self) -> list[tuple[str, Effect]]:
        """The given properties that change nothing here, by name, for `config lint`."""
        rows = ((name, broker_definition(name)) for name in sorted(self.properties))
        return [(name, row.effect) for name, row in rows if row is not None and row.effect is not Effect.ACTED]
