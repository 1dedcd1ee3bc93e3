"""Disks are formatted: those of all nodes of a new cluster together, or those of one node that comes later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.config import BrokerSettings
from penstock.model.ids import Millis, new_uuid
from penstock.protocol.disk.raft_records import VotersRecord
from penstock.server.formatting import format_directories, new_cluster_id, only_voter
from penstock.storage.meta_properties import read_meta_properties
from penstock.testing.sim.machine import FIRST_MOMENT_MS, Machine

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from penstock.model.ids import Uuid
    from penstock.testing.ancient import Past
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.world import World


class Founding:
    """Knows the id of the cluster, and makes machines that belong to it."""

    def __init__(self, world: World, plan: Plan, random: Random) -> None:
        self._world, self._plan, self._random = world, plan, random
        self._cluster_id = new_cluster_id(random)
        self._newest = 0
        self.on_replaced: Callable[[int], None] = lambda _node_id: None

    def add_machine(self) -> Machine:
        """A machine with the next node id; its disk is blank."""
        self._newest += 1
        properties = self._plan.node_properties(self._newest)
        machine = Machine(self._world, self._newest, properties, self._world.new_random())
        self._world.machines.append(machine)
        return machine

    def found(self, past: Past | None = None) -> None:
        """Formats all nodes together: they know each other as voters from the first moment on."""
        voters = VotersRecord()
        for node_id in self._plan.controllers:
            settings = BrokerSettings.load(self._plan.node_properties(node_id))
            endpoints = settings.advertised_controller_listeners
            voters.voters += only_voter(settings.node_id, new_uuid(self._random), endpoints, f"node-{node_id}").voters
        for _ in range(self._plan.nodes):
            machine = self.add_machine()
            self._format(machine, voters)
            if past is not None:
                past.lay_down(machine.disk, BrokerSettings.load(machine.properties), self._now())

    def replace_disk(self, machine: Machine) -> None:
        """An empty disk, formatted with a new directory id. A controller is no voter until the quorum made it one."""
        machine.disk.wipe()
        self._format(machine, None)
        self.on_replaced(machine.node_id)

    def _format(self, machine: Machine, voters: VotersRecord | None) -> None:
        settings = BrokerSettings.load(machine.properties)
        now = self._now()
        format_directories(
            machine.disk, settings.log_dirs, settings.metadata_log_dir, self._cluster_id, settings.node_id, settings,
            self._random, now=now, standalone=False, voters=voters, own_host=machine.host,
        )  # fmt: skip

    def _now(self) -> Millis:
        return Millis(FIRST_MOMENT_MS + self._plan.century_ms + int(self._world.scheduler.now * 1_000))


def directory_id(machine: Machine) -> Uuid | None:
    """By which id the quorum knows a machine whose disk is this one."""
    with machine.disk.looked_at():
        meta = read_meta_properties(machine.disk, machine.metadata_log_dir)
    return None if meta is None else meta.directory_id
