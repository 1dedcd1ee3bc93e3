"""Every kind of file is damaged in every way while its node is down; then that node has to lead the quorum.

It repairs the file, or it refuses to start with exit code 1 and a sentence that names it; it never runs as less than a
node, its logs never part from the others', and nothing that was acknowledged is lost. So that no damage goes unnoticed
the node is made to use every file (`asking.py`): it leads the quorum and the partition, everything is read from it and
copied from it, a controller whose metadata was wiped fetches its snapshot, and a file that is as it was damaged then is
read once more by a clean start. What is left is one that misleads no reader, of the kinds in `HARMLESS`.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from penstock.blocking import Admin
from penstock.model.ids import TopicPartition
from tests.compat.cluster import ClusterNode, Host, loopback_host, view
from tests.compat.processes import wait_for
from tests.faults.cluster import readers, writers
from tests.faults.cluster.asking import Asking, BadChecksum, Damaged, Repeater, committed_of
from tests.faults.cluster.damage import (
    HARMLESS,
    MADE_UNDER_ANOTHER_NAME,
    METADATA,
    Backup,
    Case,
    every_case,
    harm,
    kinds,
)
from tests.faults.cluster.history import History
from tests.faults.cluster.load import Load
from tests.faults.cluster.replicas import assert_agree, assert_metadata_agree
from tests.faults.cluster.shim import Shim
from tests.faults.cluster.watched import FrozenWatch, WatchedCluster
from tests.faults.counts import MINUTES, SOAKING, rounds

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

log = logging.getLogger(__name__)

TOPIC, PARTITIONS, VICTIM = "ledger", 2, 1
TRIMMED, TRIMMED_TO = "trimmed", 5
LEAD_TRIES = 30
STORAGE_FAILED = "error 56"
LASTING_MS, SEALED_RECORDS, RATE_PER_S = "120000", 20, 6
FOREIGN = "belongs to another cluster; this node is in cluster"
"""What a node says that takes itself for one of another cluster; it waits to be told otherwise."""
PROPERTIES = {
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    # The log before a snapshot goes, so that whoever has nothing needs the snapshot.
    "metadata.max.retention.bytes": "60000",
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
        self.asking = Asking(cluster, self.node, TOPIC, 0)
        self.repeater = Repeater(TOPIC, 0, load.history)
        self.asking.lead()
        self.repeater.send(self.node.address)
        self.trimmed = Asking(cluster, self.node, TRIMMED, 0)
        self._trim()
        self._made = 0
        self._spares: dict[str, tuple[Path, bytes]] = {}
        self._left: tuple[Path, bytes | None, bytes] | None = None
        self._down_by_crash: bool | None = None

    def suffer(self, case: Case, chance: random.Random) -> str:
        """What became of the file.

        `repaired`, `refused`, or that its node `waits` and says for what; `told` when readers of that file are given an
        error or a checksum that does not hold; `harmless` when everything was asked for and was right although the file
        is as it was damaged. What is not repaired is put back.
        """
        began = time.monotonic()
        self._take_down(case)
        path = self._find(case.kind)
        backup, sound = Backup(self.node.data_dir), path.read_bytes()
        segments = self._segments()
        harm(case, path, self.shim, chance)
        harmed = _content(path)
        said_before = self.node.log.stat().st_size
        down = time.monotonic()
        self._down_by_crash = None
        outcome = self._come_back(path, said_before)
        back = time.monotonic()
        if outcome == "repaired":
            outcome = self._used(case, path, said_before, harmed, segments)
        used = time.monotonic()
        if outcome not in ("repaired", "harmless"):
            assert self.node.stop() in (0, 1, None), self.cluster.last_words()
            self.shim.mend()
            backup.restore()
            self._down_by_crash = case.crashed
        elif outcome == "harmless":
            self._left = (path, harmed, sound)
        log.info(
            "down in %.1f s, back in %.1f s, used in %.1f s, put back in %.1f s",
            down - began, back - down, used - back, time.monotonic() - used,
        )  # fmt: skip
        return outcome

    def _used(self, case: Case, path: Path, said_before: int, harmed: bytes | None, segments: list[int]) -> str:
        """What became of the file when everything was asked of its node."""
        try:
            self._prove_well()
            self._ask_everything(case, segments)
            if self._mended(path, harmed):
                return "repaired"
            return self._restart(case, path, harmed, segments)
        except Damaged as told:
            if STORAGE_FAILED in str(told):
                # Its only directory is offline, so it ends.
                wait_for("the node to end", lambda: not self.node.running, timeout_s=30)
            if self.node.running:
                return self._told(path, said_before, told)
            return self._refused(path, said_before)
        except (AssertionError, OSError):
            if self.node.running:
                raise
            # A file that nobody needs at the start is opened when somebody does.
            return self._refused(path, said_before)

    def _mended(self, path: Path, harmed: bytes | None) -> bool:
        """An unreadable file is as it was, however often it is written: its disk still refuses."""
        return _content(path) != harmed

    def _restart(self, case: Case, path: Path, harmed: bytes | None, segments: list[int]) -> str:
        """Nobody has written the file yet: a clean stop may, and the next start reads what a clean stop leaves."""
        assert self.node.stop() == 0, f"the node did not stop in order\n{self.cluster.last_words()}"
        mended = self._mended(path, harmed)
        self.cluster.start(VICTIM)
        self.cluster.wait_until_whole()
        self._ask_everything(case, segments)
        if mended or self._mended(path, harmed) or (not path.exists() and case.kind in MADE_UNDER_ANOTHER_NAME):
            return "repaired"
        assert case.kind in HARMLESS, f"{path} is as it was damaged, and nobody noticed"
        return "harmless"

    def _told(self, path: Path, said_before: int, told: Damaged) -> str:
        """Nothing wrong was taken for right, and the node says which file it is, or a checksum says it to readers."""
        log.info("told: %s", told)
        if isinstance(told, BadChecksum):
            return "told"
        said = self._words(said_before)
        named = path.name in said and str(path.parent) in said
        assert named, f"{told}, and the node does not name {path}\n{said}"
        return "told"

    def _ask_everything(self, case: Case, segments: list[int]) -> None:
        self.asking.lead()
        self.repeater.repeat(self.node.address)
        self.repeater.send(self.node.address)
        truth = committed_of(self.others[0].data_dir, TOPIC, 0, self.repeater.end)
        assert truth[-1].end == self.repeater.end, "everybody has what was acknowledged by all"
        # The first and the last of them are those that are damaged.
        ends = [*dict.fromkeys((*segments[:1], *segments[-2:]))]
        self.asking.read(truth, ends)
        self.asking.search(truth, ends)
        if kinds(TOPIC)[case.kind].directory == "":
            self._ask_for_the_trimmed()
        if kinds(TOPIC)[case.kind].directory == METADATA:
            self._wipe_a_controller()
        else:
            self.asking.be_copied(self.others[1], self.cluster.brokers)
            copied = committed_of(self.others[1].data_dir, TOPIC, 0, self.repeater.end)
            assert copied == truth, f"a copy of {len(copied)} batches differs from the {len(truth)} that there are"
        self.load.wait_for_progress(1)

    def _trim(self) -> None:
        """A topic whose first records were deleted, so that the checkpoint of log starts has something to tell."""
        with Admin(bootstrap_servers=self.cluster.bootstrap) as admin:
            admin.create_topic(TRIMMED, assignment={0: [VICTIM, 2, 3]})
            self.trimmed.lead()
            Repeater(TRIMMED, 0, History()).send(self.node.address, 3 * TRIMMED_TO)
            admin.delete_records({TopicPartition(TRIMMED, 0): TRIMMED_TO}).checked()

    def _ask_for_the_trimmed(self) -> None:
        """In doubt a node shows again what was deleted; it never deletes more."""
        self.trimmed.lead()
        place = TopicPartition(TRIMMED, 0)
        with Admin(bootstrap_servers=self.cluster.bootstrap) as admin:
            start = admin.offsets({place: "earliest"}).checked()[place].offset
        assert start <= TRIMMED_TO, f"records were deleted before {TRIMMED_TO}, and are gone before {start}"
        truth = committed_of(self.others[0].data_dir, TRIMMED, 0, 3 * TRIMMED_TO)
        self.trimmed.read([batch for batch in truth if batch.base >= TRIMMED_TO], [TRIMMED_TO])

    def _wipe_a_controller(self) -> None:
        """It gets the metadata from the victim, which leads."""
        other = self.others[1]
        self._lead()
        assert other.stop() == 0, self.cluster.last_words()
        shutil.rmtree(other.data_dir / METADATA)
        self.cluster.start(other.node_id)
        self.cluster.wait_until_whole()
        self._lead()
        self._decide()

    def _segments(self) -> list[int]:
        return sorted(int(path.stem) for path in (self.node.data_dir / f"{TOPIC}-0").glob("*.log"))

    def _prove_well(self) -> None:
        self.cluster.wait_until_whole()
        self._lead()
        self._decide()

    def _take_down(self, case: Case) -> None:
        """Ends the node; what it has got since the last case is compared with what the others have.

        A node whose files were put back is down as the case before had it, and stays so if this one wants that too.
        """
        if self._down_by_crash is case.crashed:
            return
        if self._down_by_crash is not None:
            self.cluster.start(VICTIM)
        self._down_by_crash = None
        self.cluster.wait_until_whole()
        if case.crashed:
            self.node.kill()
        else:
            assert self.node.stop() == 0, f"the node did not stop in order\n{self.cluster.last_words()}"
        self.shim.mend()
        if self._left is not None:
            self._put_back(*self._left)
        self._agree()

    def _put_back(self, path: Path, harmed: bytes | None, sound: bytes) -> None:
        """Unless somebody has made the file anew meanwhile, or has rightly removed it."""
        self._left = None
        if path.is_dir():
            path.rmdir()
        if path.parent.is_dir() and _content(path) in (harmed, None):
            path.write_bytes(sound)

    def finish(self) -> None:
        self._take_down(Case("nothing", "harmed"))
        self._down_by_crash = None
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

        def outcome() -> str:
            if not child.running():
                return "refused"
            if self.cluster.serves(self.node):
                return "repaired"
            return "waits" if FOREIGN in self._words(said_before) else ""

        found = wait_for("the node to serve, to end or to say why not", outcome, timeout_s=60)
        return self._refused(path, said_before) if found == "refused" else found

    def _refused(self, path: Path, said_before: int) -> str:
        """Of a node that has ended: it says why."""
        assert self.node.child is not None
        code, said = self.node.child.wait(1), self._words(said_before)
        assert code == 1, f"the node ended with {code}\n{said}"
        assert "Traceback" not in said, said
        last = [line for line in said.splitlines() if line.startswith("penstock: ")]
        assert last, f"the node ended without a sentence\n{said}"
        named = path.name in said and str(path.parent) in said
        assert named, f"the node does not name {path}\n{said}"
        log.info("refused: %s", last[-1])
        return "refused"

    def _words(self, since: int) -> str:
        with self.node.log.open("rb") as file:
            file.seek(since)
            return file.read().decode(errors="replace")

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


def _content(path: Path) -> bytes | None:
    """None of what is no file."""
    return path.read_bytes() if path.is_file() else None


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
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topic(
                TOPIC,
                configs={"segment.ms": LASTING_MS, "retention.ms": "-1", "index.interval.bytes": "300"},
                assignment={partition: [VICTIM, 2, 3] for partition in range(PARTITIONS)},
            )
        load = stack.enter_context(
            Load(
                cluster,
                TOPIC,
                PARTITIONS,
                writing=[writers.Confluent, writers.Own],
                reading=[readers.ConfluentAssigned, readers.OwnMember],
                rate_per_s=RATE_PER_S,
            )
        )
        _seal_one_segment(cluster, load)
        # The first stop leaves files that a new node does not have.
        assert cluster.nodes[VICTIM].stop() == 0
        cluster.start(VICTIM)
        cluster.wait_until_whole()
        yield World(cluster, load, shim)


def _seal_one_segment(cluster: WatchedCluster, load: Load) -> None:
    """One with a few dozen batches. Then segments last: the more files there are, the longer a case takes."""
    load.wait_for_progress(SEALED_RECORDS)
    logs = cluster.nodes[VICTIM].data_dir / f"{TOPIC}-0"
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.configure_topic(TOPIC, {"segment.ms": "500"})
        wait_for("a sealed segment", lambda: len([*logs.glob("*.log")]) > 1, timeout_s=60)
        admin.configure_topic(TOPIC, {"segment.ms": LASTING_MS})


@pytest.mark.timeout(60 * MINUTES + 600 if SOAKING else 240)
def test_a_damaged_file_is_repaired_or_named_and_its_node_leads_again(tmp_path: Path) -> None:
    seed = os.environ.get("PENSTOCK_SEED", "1")
    cases = chosen_cases(seed) if SOAKING else EVERY_DAY
    outcomes: dict[Case, str] = {}
    failures: list[str] = []
    numbers = rounds(fast=len(cases), full=len(cases))
    number = next(numbers, None)
    while number is not None:
        # A cluster goes on until a case fails; then the next case gets a new one, and the test fails in the end.
        with staged(tmp_path / f"from-{number}") as world:
            while number is not None:
                case = cases[number]
                try:
                    outcomes[case] = world.suffer(case, random.Random(f"{seed} {case}"))
                except (AssertionError, OSError) as failure:
                    outcomes[case] = "WRONG"
                    failures.append(f"{case}, or the one before: {failure}")
                    log.error("%s", failures[-1])
                log.info("case %d of %d: %s: %s", number + 1, len(cases), case, outcomes[case])
                number = next(numbers, None)
                if "WRONG" in outcomes[case]:
                    break
            else:
                world.finish()
    print(f"\ndamaged files, seed {seed}:\n{table(outcomes)}")
    assert not failures, "\n\n".join(failures)


def chosen_cases(seed: str) -> list[Case]:
    """All of a seed, in its order; those behind the first PENSTOCK_SKIP, and of PENSTOCK_KINDS alone if it is set."""
    cases = every_case(TOPIC, random.Random(seed))[int(os.environ.get("PENSTOCK_SKIP", "0")) :]
    wanted = os.environ.get("PENSTOCK_KINDS", "")
    return [case for case in cases if not wanted or case.kind in wanted.split(",")]


def table(outcomes: Mapping[Case, str]) -> str:
    """A line for each kind: what became of it, damaged in which ways; in capitals after a crash."""
    lines = []
    for kind in kinds(TOPIC):
        by_outcome: dict[str, list[str]] = {}
        for case, outcome in outcomes.items():
            if case.kind == kind:
                words = case.damage.upper() if case.crashed else case.damage
                by_outcome.setdefault(outcome, []).append(words)
        told = "; ".join(f"{outcome}: {', '.join(sorted(found))}" for outcome, found in sorted(by_outcome.items()))
        if told:
            lines.append(f"{kind:34} {told}")
    counted = Counter(outcomes.values())
    return "\n".join([*lines, ", ".join(f"{count} {outcome}" for outcome, count in sorted(counted.items()))])
