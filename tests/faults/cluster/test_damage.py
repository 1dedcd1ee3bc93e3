"""Every kind of file is damaged in every way while its node is down; then that node has to lead the quorum.

It repairs the file, or it refuses to start with exit code 1 and a sentence that names it; it never runs as less than a
node, its logs never part from the others', and nothing that was acknowledged is lost.
"""

from __future__ import annotations

import logging
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from penstock.blocking import Admin
from tests.compat.cluster import ClusterNode, Host, loopback_host, view
from tests.compat.processes import wait_for
from tests.faults.cluster import readers, writers
from tests.faults.cluster.damage import METADATA, Backup, Case, every_case, harm, kinds
from tests.faults.cluster.load import Load
from tests.faults.cluster.replicas import assert_agree, assert_metadata_agree
from tests.faults.cluster.shim import Shim
from tests.faults.cluster.watched import FrozenWatch, WatchedCluster
from tests.faults.counts import MINUTES, SOAKING, rounds

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

log = logging.getLogger(__name__)

TOPIC, PARTITIONS, VICTIM = "ledger", 2, 1
LEAD_TRIES = 30
FOREIGN = "belongs to another cluster; this node is in cluster"
"""What a node says that takes itself for one of another cluster; it waits to be told otherwise."""
PROPERTIES = {
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "metadata.log.max.record.bytes.between.snapshots": "20000",
}
# One of each answer, and of each room: a log directory's file, a log's, the quorum's.
EVERY_DAY = [
    Case("quorum-state", "emptied", crashed=True),
    Case("newest metadata snapshot", "halved"),
    Case("active segment", "halved", crashed=True),
]


class World:
    """Three nodes under load, one of which is the victim of every case."""

    def __init__(self, cluster: WatchedCluster, load: Load, shim: Shim) -> None:
        self.cluster, self.load, self.shim = cluster, load, shim
        self.node = cluster.nodes[VICTIM]
        self.others = [node for node in cluster.brokers if node is not self.node]
        self._made = 0
        self._spares: dict[str, tuple[Path, bytes]] = {}

    def suffer(self, case: Case, chance: random.Random) -> str:
        """What became of the file: `repaired`, `refused`, or that its node `waits` and says for what."""
        self._take_down(case)
        path = self._find(case.kind)
        backup = Backup(self.node.data_dir)
        harm(case, path, self.shim, chance)
        said_before = self.node.log.stat().st_size
        outcome = self._come_back(path, said_before)
        if outcome != "repaired":
            assert self.node.stop() in (0, 1), self.cluster.last_words()
            self.shim.mend()
            backup.restore()
            self.cluster.start(VICTIM)
        self.cluster.wait_until_whole()
        self._lead()
        self._decide()
        self.load.wait_for_progress()
        return outcome

    def _take_down(self, case: Case) -> None:
        """Ends the node; what it has got since the last case is compared with what the others have."""
        if case.crashed:
            self.node.kill()
        else:
            assert self.node.stop() == 0, f"the node did not stop in order\n{self.cluster.last_words()}"
        self.shim.mend()
        self._agree()

    def finish(self) -> None:
        self._take_down(Case("nothing", "harmed"))
        self.cluster.start(VICTIM)
        self.cluster.wait_until_whole()
        self.load.finish()

    def _find(self, kind: str) -> Path:
        """The file; one that a node does not make again after a case is put back as it was."""
        place = kinds(TOPIC)[kind]
        if kind in self._spares and not place.there(self.node.data_dir):
            path, data = self._spares[kind]
            path.write_bytes(data)
        path = place.find(self.node.data_dir)
        self._spares.setdefault(kind, (path, path.read_bytes()))
        return path

    def _come_back(self, path: Path, said_before: int) -> str:
        """A node that does not serve has to say why, and one that ends to end with 1."""
        self.cluster.launch(VICTIM)
        child = self.node.child
        assert child is not None

        def words() -> str:
            with self.node.log.open("rb") as file:
                file.seek(said_before)
                return file.read().decode(errors="replace")

        def outcome() -> str:
            if not child.running():
                return "refused"
            if self.node.serves():
                return "repaired"
            return "waits" if FOREIGN in words() else ""

        found = wait_for("the node to serve, to end or to say why not", outcome, timeout_s=60)
        if found == "refused":
            code, said = child.wait(1), words()
            assert code == 1, f"the node ended with {code}\n{said}"
            assert "Traceback" not in said, said
            last = [line for line in said.splitlines() if line.startswith("penstock: ")]
            assert last, f"the node ended without a sentence\n{said}"
            named = path.name in said and str(path.parent) in said
            assert named, f"the node does not name {path}\n{said}"
            log.info("refused: %s", last[-1])
        return found

    def _lead(self) -> None:
        """Whoever leads is paused until somebody else does, as often as it takes."""
        for _ in range(LEAD_TRIES):
            leader = self.cluster.controller()
            if leader == VICTIM:
                return
            node = self.cluster.nodes[leader]
            node.pause()
            try:
                wait_for("another controller", partial(self._deposed, leader), timeout_s=30)
            finally:
                node.resume()
        raise AssertionError(f"node {VICTIM} did not become the controller in {LEAD_TRIES} elections")

    def _deposed(self, leader: int) -> bool:
        return self.cluster.controller() != leader

    def _decide(self) -> None:
        """What it decides now, everybody knows; and everybody goes on, not only says so."""
        self._made += 1
        name = f"decided-{self._made}"
        with Admin(bootstrap_servers=self.cluster.bootstrap) as admin:
            admin.create_topic(name, 1, 3)
        watch = FrozenWatch()

        def known() -> bool:
            frozen = watch.look({node.node_id: self.cluster.told(node) for node in self.cluster.brokers})
            assert not frozen, frozen
            return all(name in _topics(node) for node in self.cluster.brokers)

        wait_for(f"everybody to know of {name}", known, timeout_s=60)
        assert len({frozenset(_topics(node)) for node in self.cluster.brokers}) == 1, "views of the cluster differ"
        self.cluster.wait_until_whole()

    def _agree(self) -> None:
        """The files of the victim, stopped, beside those of the others, which go on."""
        for partition in range(PARTITIONS):
            for other in self.others:
                assert_agree(self.node.data_dir, other.data_dir, TOPIC, partition)
        for other in self.others:
            assert_metadata_agree(self.node.data_dir / METADATA, other.data_dir / METADATA)


def _topics(node: ClusterNode) -> set[str]:
    return {each.topic for each in view(node.address).partitions}


@contextmanager
def staged(home: Path) -> Iterator[World]:
    with ExitStack() as stack:
        shim = Shim(home / "shim")
        stack.callback(shim.close)

        def host(node_id: int) -> Host:
            found = loopback_host(node_id)
            return found._replace(prefix=shim.words) if node_id == VICTIM else found

        cluster = stack.enter_context(WatchedCluster(home, 3, properties=PROPERTIES, host=host))
        cluster.new_topic(TOPIC, PARTITIONS, segment_ms="3000", retention_ms="-1")
        load = stack.enter_context(
            Load(
                cluster,
                TOPIC,
                PARTITIONS,
                writing=[writers.Confluent, writers.Own],
                reading=[readers.ConfluentAssigned, readers.OwnMember],
                rate_per_s=20,
            )
        )
        yield World(cluster, load, shim)


@pytest.mark.timeout(60 * MINUTES + 600 if SOAKING else 240)
def test_a_damaged_file_is_repaired_or_named_and_its_node_leads_again(tmp_path: Path) -> None:
    seed = os.environ.get("PENSTOCK_SEED", "1")
    chance = random.Random(seed)
    cases = every_case(TOPIC, chance) if SOAKING else EVERY_DAY
    outcomes: Counter[str] = Counter()
    with staged(tmp_path) as world:
        for number in rounds(fast=len(cases), full=len(cases)):
            case = cases[number]
            try:
                outcome = world.suffer(case, chance)
            except AssertionError as failure:
                raise AssertionError(f"{case}, or the one before: {failure}") from failure
            outcomes[outcome] += 1
            log.info("case %d of %d: %s: %s", number + 1, len(cases), case, outcome)
        world.finish()
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    print(f"\ndamaged files, seed {seed}: {told}")
