"""Rules between properties of a node: roles, listeners, quorum, log, groups. Each problem is one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from penstock.model.config.endpoints import check_distinct_ports
from penstock.model.config.values import NodeValues

_MEGABYTE: Final = 1 << 20
_HOST: Final = r"[0-9a-zA-Z\-%._:]*"
_CODECS: Final = range(5)
_BUILT_IN_ASSIGNORS: Final = {
    "group.consumer.assignors": ("uniform", "range"),
    "group.share.assignors": ("simple",),
}


def cross_check(settings: NodeValues) -> list[str]:
    """Everything that is wrong with a set of values that are each fine alone; empty when the node may start."""
    problems: list[str] = []
    for check in (_identity, _log, _replication, _sockets, _groups, _listeners):
        try:
            problems.extend(check(settings))
        except ValueError as malformed:  # a list of endpoints or pairs that cannot be read
            problems.append(str(malformed))
    return problems


def _identity(settings: NodeValues) -> Iterator[str]:
    if settings["broker.id"] != settings["node.id"]:
        yield "broker.id and node.id must be the same; broker.id is the older name and can go"


def _log(settings: NodeValues) -> Iterator[str]:
    topic = settings.topic({})
    if topic.segment_ms < 1:
        yield "log.roll.ms must be at least 1"
    if topic.segment_jitter_ms < 0:
        yield "log.roll.jitter.ms must be at least 0"
    if topic.retention_ms == 0:
        yield "log.retention.ms must be -1 (for ever) or at least 1"
    threads = settings.number("log.cleaner.threads")
    if threads == 0:
        yield "log.cleaner.threads must be at least 1; log.cleaner.enable=false turns compaction off"
    elif settings.number("log.cleaner.dedupe.buffer.size") // threads <= _MEGABYTE:
        yield "log.cleaner.dedupe.buffer.size must be more than 1 MB per cleaner thread"
    unknown = set(settings.cordoned_log_dirs) - set(settings.log_dirs)
    if unknown:
        yield f"cordoned.log.dirs has directories that are not in log.dirs: {', '.join(sorted(unknown))}"


def _replication(settings: NodeValues) -> Iterator[str]:
    wait_ms = settings.number("replica.fetch.wait.max.ms")
    if wait_ms > settings.number("replica.socket.timeout.ms"):
        yield "replica.socket.timeout.ms must be at least replica.fetch.wait.max.ms, or waiting fetches time out"
    if wait_ms > settings.number("replica.lag.time.max.ms"):
        yield "replica.lag.time.max.ms must be at least replica.fetch.wait.max.ms, or waiting followers seem late"


def _sockets(settings: NodeValues) -> Iterator[str]:
    queued_bytes = settings.number("queued.max.request.bytes")
    if 0 < queued_bytes < settings.number("socket.request.max.bytes"):
        yield "queued.max.request.bytes must be at least socket.request.max.bytes, or the largest request never fits"
    if settings.number("max.connections.per.ip") == 0 and not settings.connections_per_ip:
        yield "max.connections.per.ip can be 0 only with max.connections.per.ip.overrides"
    for host in settings.connections_per_ip:
        if re.fullmatch(_HOST, host) is None:
            yield f"max.connections.per.ip.overrides: {host!r} is not a host"
    idle_ms = settings.number("connections.max.idle.ms")
    if 0 <= idle_ms <= settings.number("connection.failed.authentication.delay.ms"):
        yield "connection.failed.authentication.delay.ms must be less than connections.max.idle.ms"


def _groups(settings: NodeValues) -> Iterator[str]:
    if "classic" not in settings.names("group.coordinator.rebalance.protocols"):
        yield "group.coordinator.rebalance.protocols: the classic protocol cannot be turned off"
    for name in ("offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec"):
        if settings.number(name) not in _CODECS:
            yield f"{name} must be 0 (none), 1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd)"
    for name, built_in in _BUILT_IN_ASSIGNORS.items():
        if strange := [one for one in settings.names(name) if one not in built_in]:
            yield f"{name}: {strange[0]} is not one of {', '.join(built_in)}; Java classes cannot be loaded"
    for kind in ("consumer", "share", "streams"):
        for bounded in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
            yield from _within(settings, f"group.{kind}", bounded)
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if settings.number(heartbeat) >= settings.number(session):
            yield f"{heartbeat} must be less than {session}"
    for bounded in ("record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks"):
        yield from _within(settings, "group.share", bounded)
    if settings.number("group.streams.num.standby.replicas") > settings.number("group.streams.max.standby.replicas"):
        yield "group.streams.num.standby.replicas must be at most group.streams.max.standby.replicas"


def _within(settings: NodeValues, prefix: str, name: str) -> Iterator[str]:
    """`prefix.name` must lie between `prefix.min.name` and `prefix.max.name`, and these in that order."""
    least, most, middle = f"{prefix}.min.{name}", f"{prefix}.max.{name}", f"{prefix}.{name}"
    if settings.number(most) < settings.number(least):
        yield f"{most} must be at least {least}"
    elif settings.number(middle) < settings.number(least):
        yield f"{middle} must be at least {least}, {settings.number(least)}"
    elif settings.number(middle) > settings.number(most):
        yield f"{middle} must be at most {most}, {settings.number(most)}"


def _listeners(settings: NodeValues) -> Iterator[str]:
    check_distinct_ports(settings.listeners)
    if settings.text("inter.broker.listener.name") and "security.inter.broker.protocol" in settings.properties:
        yield "set only one of inter.broker.listener.name and security.inter.broker.protocol"
    name = settings.inter_broker_listener_name
    if name not in settings.listener_security_protocol_map:
        yield f"the inter-broker listener {name} is not in listener.security.protocol.map"
    known = {endpoint.name for endpoint in settings.listeners} | set(settings.controller_listener_names)
    for early in settings.names("early.start.listeners"):
        if early.upper() not in known:
            yield f"early.start.listeners has {early}, which is neither in listeners nor in controller.listener.names"
    roles: dict[frozenset[str], Callable[[NodeValues], Iterator[str]]] = {
        frozenset({"broker"}): _broker_only,
        frozenset({"controller"}): _controller_only,
        frozenset({"broker", "controller"}): _controller,
    }
    if not settings.quorum_voters and not settings.quorum_bootstrap_servers:
        yield "set controller.quorum.bootstrap.servers or controller.quorum.voters, or no controller can be found"
    yield from roles[settings.process_roles](settings)
    if settings.is_broker:
        yield from _broker(settings)
    for endpoint in settings.advertised_listeners + settings.advertised_controller_listeners:
        if endpoint.host == "0.0.0.0":
            yield f"advertised.listeners: {endpoint} cannot be dialled; give an address that clients can reach"


def _broker_only(settings: NodeValues) -> Iterator[str]:
    if any(voter.node_id == settings.node_id for voter in settings.quorum_voters):
        yield f"controller.quorum.voters has node {settings.node_id}, but process.roles has no controller role"
    if settings.controller_listeners:
        yield "listeners has a name of controller.listener.names, but process.roles has no controller role"
    for name in settings.controller_listener_names:
        if name not in settings.listener_security_protocol_map:
            yield f"controller.listener.names: {name} is not in listener.security.protocol.map"
    if settings.flag("controller.quorum.auto.join.enable"):
        yield "controller.quorum.auto.join.enable needs the controller role in process.roles"


def _controller_only(settings: NodeValues) -> Iterator[str]:
    if settings.broker_listeners:
        yield "listeners may only have names of controller.listener.names when process.roles=controller"
    yield from _controller(settings)


def _controller(settings: NodeValues) -> Iterator[str]:
    voters = settings.quorum_voters
    if voters and all(voter.node_id != settings.node_id for voter in voters):
        yield f"controller.quorum.voters must have this node, {settings.node_id}, because it is a controller"
    listening = {endpoint.name for endpoint in settings.listeners}
    if missing := [name for name in settings.controller_listener_names if name not in listening]:
        yield f"controller.listener.names has {missing[0]}, which is not in listeners"
    yield from _controllers_logins(settings)


def _controllers_logins(settings: NodeValues) -> Iterator[str]:
    """Users of SCRAM stand in the log that controllers elect a leader for: several could not begin."""
    mechanism = settings.text("sasl.mechanism.controller.protocol")
    others = settings.quorum_voters or settings.quorum_bootstrap_servers
    first = next(iter(settings.controller_listener_names), "")
    protocol = settings.listener_security_protocol_map.get(first, "")
    if protocol.startswith("SASL_") and mechanism.startswith("SCRAM-") and len(others) > 1:
        yield (
            f"sasl.mechanism.controller.protocol is {mechanism}, but several controllers cannot log in to each other "
            "by it, because its users are in the log that they share only afterwards; take PLAIN, OAUTHBEARER or SSL"
        )


def _broker(settings: NodeValues) -> Iterator[str]:
    advertised = [endpoint.name for endpoint in settings.advertised_listeners]
    if not advertised:
        yield "a broker needs a listener of its own, but all of listeners are in controller.listener.names"
        return
    name = settings.inter_broker_listener_name
    if name not in advertised:
        options = ", ".join(advertised)
        yield f"the inter-broker listener {name} is not advertised; set inter.broker.listener.name to one of {options}"
    listening = {endpoint.name for endpoint in settings.listeners}
    if strange := [one for one in advertised if one not in listening]:
        yield f"advertised.listeners has {strange[0]}, which is not in listeners"
    protocol = settings.listener_security_protocol_map.get(name, "")
    mechanism = settings.text("sasl.mechanism.inter.broker.protocol")
    enabled = settings.for_listener(name, "sasl.enabled.mechanisms")
    if protocol.startswith("SASL_") and isinstance(enabled, tuple) and mechanism not in enabled:
        yield f"sasl.enabled.mechanisms must have {mechanism}, with which brokers log in to each other"
