"""From a file, or from nothing, to a node: settings, formatting, ports. `running.py` runs it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from random import SystemRandom
from typing import TYPE_CHECKING, NamedTuple

from penstock.model.config import BrokerSettings
from penstock.model.errors import PenstockError
from penstock.model.ports import Ports

if TYPE_CHECKING:
    from penstock.metadata.records import VersionedRecord
    from penstock.model.ports import Clock, Files, Net, Offload
    from penstock.protocol.disk.raft_records import VotersRecord
    from penstock.server.formatting import Formatted
    from penstock.server.node import Node

DEV_NODE_ID = 1
ADMIN_PORT_STEP = 552  # 9092 goes with 9644
PORT_MAX = 65_535
OPEN_FILES_MIN = 64
SYSTEM_BUFFER = -1


class Explained(NamedTuple):
    """One property of a node: what it came to and why."""

    name: str
    value: str
    source: str


def load_settings(path: str) -> BrokerSettings:
    """The settings of a `server.properties` or TOML file; `PenstockError` names everything that is wrong with it."""
    from penstock.declared.mistakes import not_toml
    from penstock.model.config import BadSettings, parse_properties, parse_toml
    from penstock.server.config_places import lines_of, placed

    with open(path, encoding="utf-8") as file:
        text = file.read()
    toml = path.endswith(".toml")
    try:
        properties = _with_amounts(parse_toml(text)) if toml else parse_properties(text)
    except ValueError as wrong:
        # What tomllib says ends with the place; the rest is ours.
        told = not_toml(str(wrong), text).at(path) if "(at " in str(wrong) else f"{path}: {wrong}"
        raise PenstockError(told) from wrong
    try:
        return settings_of(properties, path)
    except BadSettings as bad:
        raise BadSettings(placed(bad.problems, path, lines_of(text, toml=toml))) from None


def settings_of(properties: Mapping[str, str], told_as: str = "settings") -> BrokerSettings:
    """The settings, with `${file:…}` and the like resolved if the properties name their `config.providers`."""
    if "config.providers" not in properties:
        return BrokerSettings.load(properties)
    from penstock.security.references import Unresolved
    from penstock.transport.config_references import resolved

    try:
        found = resolved(properties)
    except Unresolved as unresolved:
        raise PenstockError(f"{told_as}: {unresolved}") from None
    return BrokerSettings.load(found)


def _with_amounts(properties: Mapping[str, str]) -> dict[str, str]:
    """`7d` and `1GiB` as numbers. Kafka's own files are read as Kafka reads them; TOML is ours."""
    from penstock.declared.amounts import plain_amount

    return {name: plain_amount(name, value) or value for name, value in properties.items()}


def explain_settings(settings: BrokerSettings, *, everything: bool) -> list[Explained]:
    from penstock.model.config import value_text

    rows = []
    for name in sorted(settings):
        # node.id and broker.id stand for each other; only one of them is in the file.
        given = name in settings.properties and name != "broker.id"
        if given or everything:
            rows.append(Explained(name, value_text(settings[name]) or "", "file" if given else "default"))
    return rows


def idle_properties(settings: BrokerSettings) -> list[tuple[str, str]]:
    """The given properties that change nothing here, and why."""
    words = {"accepted": "has no meaning here", "later": "belongs to a part that is not built yet"}
    return [(name, words[effect.value]) for name, effect in settings.without_effect()]


def dev_properties(
    data_dir: str,
    *,
    port: int,
    overrides: Mapping[str, str],
    node_id: int = DEV_NODE_ID,
    nodes: int = 1,
    controller_ports: Sequence[int] = (),
) -> dict[str, str]:
    """What node `node_id` of `penstock dev --nodes N` runs with: everything on this machine, nothing to decide.

    Node i listens on `port` + i - 1, its controller on the i-th of `controller_ports`; without them on any free one,
    which is enough for a quorum of one. The first `nodes` are the controllers; one that comes later is only a broker.
    """
    own_port, controller = port + node_id - 1 if port else 0, node_id <= nodes
    ports = list(controller_ports) or [0] * nodes
    replicas, min_isr = str(min(3, nodes)), "2" if nodes >= 3 else "1"
    listeners = [f"PLAINTEXT://127.0.0.1:{own_port}"]
    if controller:
        listeners.append(f"CONTROLLER://127.0.0.1:{ports[node_id - 1]}")
    controllers = [f"127.0.0.1:{each}" for each in ports]
    properties = {
        "node.id": str(node_id),
        "process.roles": "broker,controller" if controller else "broker",
        "listeners": ",".join(listeners),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(controllers),
        "log.dirs": f"{os.path.abspath(data_dir)}/node-{node_id}",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": min_isr,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": min_isr,
        "penstock.audit.topic.replication.factor": replicas,
        "group.initial.rebalance.delay.ms": "0",
        "penstock.admin.listener": f"127.0.0.1:{admin_port(own_port)}",
    }
    if nodes > 1:
        properties |= {"default.replication.factor": replicas, "min.insync.replicas": min_isr}
    properties.update(overrides)
    return properties


def admin_port(port: int) -> int:
    """One that goes with the clients' port, so that nodes with different ports never meet; 0 stays a free one."""
    if not port:
        return 0
    return port + ADMIN_PORT_STEP if port + ADMIN_PORT_STEP <= PORT_MAX else port - ADMIN_PORT_STEP


def dev_node(
    data_dir: str,
    *,
    port: int,
    overrides: Mapping[str, str],
    controller_port: int = 0,
    given: Given | None = None,
) -> Node:
    """A node that formats its directory itself when it is new. Tests have ports of their own `given` to it."""
    settings = settings_of(
        dev_properties(data_dir, port=port, overrides=overrides, controller_ports=(controller_port,))
    )
    return _node(settings, given, formats_itself=True)


def configured_node(settings: BrokerSettings, *, given: Given | None = None) -> Node:
    """A node whose directories were formatted before. Tests have ports of their own `given` to it."""
    return _node(settings, given, formats_itself=False)


class Given(NamedTuple):
    """Ports in the place of the machine's. A node that has them lives on one loop, whose time somebody may move."""

    clock: Clock
    offload: Offload
    files: Files | None = None


def _node(settings: BrokerSettings, given: Given | None, *, formats_itself: bool) -> Node:
    """Made on the event loop that it will serve clients on."""
    from penstock.server.loops.ports import SystemClock, ThreadOffload
    from penstock.server.node import Node
    from penstock.storage.files import DiskFiles

    loop, random = asyncio.get_running_loop(), SystemRandom()
    if given is not None:
        files = given.files or DiskFiles(max_open=_open_files_max())
        ports = Ports(given.clock, files, _net(settings, loop), given.offload)
        return Node(settings, ports, random=random, formats_itself=formats_itself)
    from penstock.server.loops.control_thread import ControlThread

    clock = SystemClock()

    def own_ports(control_loop: asyncio.AbstractEventLoop) -> Ports:
        return Ports(clock, DiskFiles(max_open=OPEN_FILES_MIN), _net(settings, control_loop), ThreadOffload(threads=2))

    ports = Ports(clock, DiskFiles(max_open=_open_files_max()), _net(settings, loop), ThreadOffload())
    quarters = ControlThread(random, own_ports)
    return Node(settings, ports, random=random, formats_itself=formats_itself, quarters=quarters)


def _net(settings: BrokerSettings, loop: asyncio.AbstractEventLoop) -> Net:
    from penstock.transport.net import AsyncioNet

    return AsyncioNet(
        loop,
        backlog=settings.number("socket.listen.backlog.size"),
        send_buffer_bytes=_buffer_bytes(settings, "socket.send.buffer.bytes"),
        receive_buffer_bytes=_buffer_bytes(settings, "socket.receive.buffer.bytes"),
    )


def _buffer_bytes(settings: BrokerSettings, name: str) -> int:
    """What the file says, or the system's choice: Kafka's default of 100 KB makes large produces twice as dear."""
    return settings.number(name) if name in settings.properties else SYSTEM_BUFFER


def format_node(
    settings: BrokerSettings,
    cluster_id: str | None,
    *,
    ignore_formatted: bool,
    standalone: bool = True,
    voters: VotersRecord | None = None,
    records: Sequence[VersionedRecord] = (),
) -> Formatted:
    """Prepares the directories of a new node; answers what was done. `voters` are those of a new cluster, `records`
    what it starts with beside its feature levels."""
    from penstock.server.formatting import format_for
    from penstock.server.loops.ports import SystemClock
    from penstock.storage.files import DiskFiles

    return format_for(
        settings,
        files=DiskFiles(max_open=OPEN_FILES_MIN),
        clock=SystemClock(),
        random=SystemRandom(),
        own_host=socket.gethostname(),
        cluster_id=cluster_id,
        ignore_formatted=ignore_formatted,
        standalone=standalone,
        voters=voters,
        records=records,
    )


def new_voters(controllers: Sequence[BrokerSettings]) -> VotersRecord:
    """The voter set of a new cluster whose nodes are all made here, with new ids for their metadata directories."""
    from penstock.model.ids import new_uuid
    from penstock.protocol.disk.raft_records import VotersRecord
    from penstock.server.controller.initial_controllers import voter_entry

    random, own_host = SystemRandom(), socket.gethostname()
    return VotersRecord(
        voters=[
            voter_entry(
                settings.node_id,
                new_uuid(random),
                [(at.name, at.host or own_host, at.port) for at in settings.advertised_controller_listeners],
            )
            for settings in controllers
        ]
    )


def _open_files_max() -> int:
    """Half of the descriptors go to segment files, the rest to connections."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return max(OPEN_FILES_MIN, soft // 2)
