"""What can go wrong with transactions: nodes by their part in them, links, and the workers themselves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.blocking import Admin
from penstock.coordinators.home import home_partition
from penstock.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from tests.compat.cluster import ClusterNode, Host
from tests.faults.cluster import faults as every
from tests.faults.cluster.faults import LOOK_S, MENU, Body, Fault, Scene
from tests.faults.cluster.hosts import between
from tests.faults.cluster.links import CUT
from tests.faults.cluster.schedule import Kind, Takes
from tests.faults.transactions.load import TransactionLoad
from tests.faults.transactions.workshop import Workshop
from tests.patience import within


@dataclass
class TransactionScene(Scene):
    load: TransactionLoad = field(kw_only=True)  # type: ignore[assignment]
    workers_at: dict[int, Host] = field(default_factory=dict)
    """The hosts of workers by their place on the network, where there is one."""

    @property
    def workshop(self) -> Workshop:
        return self.load.workshop

    def leader(self, chance: random.Random) -> int:
        """Who leads a partition of any of the topics."""
        return self._leads(chance.choice(self.workshop.topics), chance.choice([*self.load.partitions]))

    def transaction_coordinator(self, chance: random.Random) -> int:
        return self._home(TRANSACTIONS_TOPIC, chance.choice(self.workshop.transactional_ids))

    def group_coordinator(self, chance: random.Random) -> int:
        return self._home(OFFSETS_TOPIC, chance.choice(self.workshop.groups))

    def _home(self, topic: str, key: str) -> int:
        for node in self.answering():
            try:
                count = len(self.cluster.look(node, [topic], timeout_s=LOOK_S).partitions)
            except OSError:
                continue
            return self._leads(topic, home_partition(key, count)) if count else 0
        return 0

    def _leads(self, topic: str, partition: int) -> int:
        """As anybody says; 0 when nobody does."""
        for node in self.answering():
            try:
                found = self.cluster.look(node, [topic], timeout_s=LOOK_S).partitions
            except OSError:
                continue
            return next((max(each.leader, 0) for each in found if each.index == partition), 0)
        return 0


COORDINATORS = ("transaction_coordinator", "group_coordinator")


@dataclass(frozen=True)
class CoordinatorFault(Fault):
    """It happens to whoever coordinates one of the transactional ids, or one of the groups."""

    def victim(self, scene: Scene, chance: random.Random) -> ClusterNode:
        assert isinstance(scene, TransactionScene), "others know no coordinators"
        wanted = getattr(scene, self.whom)(chance)
        free = scene.free(self.kind.takes) or [*scene.cluster.nodes.values()]
        return next((node for node in free if node.node_id == wanted), chance.choice(free))


# -- workers

WORKERS: dict[str, Fault] = {}


def _of_workers(lasts_s: tuple[float, float] = (0.5, 5.0)) -> object:
    def put(body: Body) -> Body:
        WORKERS[body.__name__] = Fault(Kind(body.__name__, Takes.NOTHING, lasts_s=lasts_s), body)
        return body

    return put


def _scene(scene: Scene) -> TransactionScene:
    assert isinstance(scene, TransactionScene), "others have no workers"
    return scene


@_of_workers(lasts_s=(0.0, 0.1))
def kill_worker(scene: Scene, _node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """kill -9 in the middle of whatever it does; its successor has the same ids."""
    workshop = _scene(scene).workshop
    workshop.kill(workshop.choose(chance))
    yield


@_of_workers(lasts_s=(0.0, 0.1))
def kill_all_workers(scene: Scene, _node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    workshop = _scene(scene).workshop
    for slot in workshop.slots:
        workshop.kill(slot)
    yield


@_of_workers(lasts_s=(0.1, 6.0))
def pause_worker(scene: Scene, _node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """From a hiccup to longer than a session: it wakes up as somebody whose partitions others have."""
    workshop = _scene(scene).workshop
    frozen = workshop.freeze(workshop.choose(chance))
    yield
    workshop.thaw(frozen)


@_of_workers(lasts_s=(1.0, 6.0))
def replace_paused_worker(scene: Scene, _node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """Somebody else begins with its ids while it is frozen; when it wakes up it goes on where it was."""
    workshop = _scene(scene).workshop
    slot = workshop.choose(chance)
    frozen = workshop.freeze(slot)
    workshop.replace(slot)
    yield
    workshop.thaw(frozen)


@_of_workers()
def isolate_workers(scene: Scene, _node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """One of the machines with workers is cut off from all nodes."""
    here = _scene(scene)
    at = chance.choice(sorted(here.workers_at))
    number = here.network.impose(between([at], here.node_ids), CUT)
    yield
    here.network.lift(number)


@_of_workers()
def cut_workers_from_node(scene: Scene, node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """Workers do not reach one of the nodes, and all others do."""
    here = _scene(scene)
    at = chance.choice(sorted(here.workers_at))
    number = here.network.impose(between([at], [node.node_id]), CUT)
    yield
    here.network.lift(number)


def move_coordinators(scene: Scene, _node: ClusterNode, chance: random.Random) -> Iterator[None]:
    """The preferred leaders of the coordinators' topics lead again: homes move, and nobody has died."""

    def work() -> None:
        with Admin(bootstrap_servers=scene.cluster.bootstrap, request_timeout_ms=within(5_000)) as admin:
            homes = [each for each in admin.topics(internal=True) if each.name in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)]
            admin.elect_leaders([TopicPartition(each.name, at.partition) for each in homes for at in each.partitions])

    yield from every._beside(work)


def _menu() -> dict[str, Fault]:
    found = {name: MENU[name] for name in FROM_EVERY}
    for name, body in (("kill", every.kill), ("pause", every.pause), ("isolate", every.isolate)):
        kind = MENU[f"{name}_leader"].kind
        for whom in COORDINATORS:
            found[f"{name}_{whom}"] = CoordinatorFault(kind._replace(name=f"{name}_{whom}"), body, whom)
    found["move_coordinators"] = Fault(Kind("move_coordinators", lasts_s=(0.0, 0.1)), move_coordinators)
    return {**found, **WORKERS}


FROM_EVERY = (
    "kill_leader", "kill_controller", "kill_and_start_at_once", "kill_all", "stop_leader", "stop_controller",
    "pause_leader", "pause_controller", "isolate_leader", "isolate_controller", "leave_in_minority", "deafen_leader",
    "mute_leader", "cut_one_link", "cut_a_ring", "split", "lose_packets", "delay_packets", "elect_preferred",
    "move_partitions",
)  # fmt: skip
TXN_MENU = _menu()
LINKS = every.LINKS | {name for name in TXN_MENU if name.startswith("isolate")} | {"cut_workers_from_node"}


def menu(scene: TransactionScene) -> list[Fault]:
    """What can be done on this machine."""
    return [each for name, each in TXN_MENU.items() if scene.network.can_cut or name not in LINKS]
