"""Drivers on several machines, killed at any request, whose disks are lost, and who come back: one of them goes on, and
finds what every committed batch has read."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import MemoryStore

from penstock.spark.checkpoints.local import LocalCheckpoint
from penstock.spark.checkpoints.manifest import KEPT, MANIFESTS, PACKS, Manifest
from penstock.spark.checkpoints.mirror import CheckpointTaken, Mirror, PutsOverwrite
from penstock.spark.checkpoints.objects import Objects, StoreFailed
from penstock.spark.errors import SparkRoomError


class Killed(BaseException):
    """As far as the process is concerned nothing comes after it."""


class DyingObjects(Objects):
    """The store as a process reaches it that is killed at a request: before it is made, or before its answer."""

    def __init__(self, store: Any) -> None:
        super().__init__(store, "memory://lake/c")
        self.left: int | None = None
        """Requests and answers until the end."""

    def put_new(self, name: str, data: bytes) -> bool:
        self._step()
        landed = super().put_new(name, data)
        self._step()
        return landed

    def put(self, name: str, data: bytes | IO[bytes]) -> None:
        self._step()
        super().put(name, data)
        self._step()

    def delete(self, names: Any) -> None:
        for name in names:
            self._step()
            super().delete([name])

    def _step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Killed


@dataclass
class Machine:
    """A driver's disk, and the driver."""

    home: Path
    objects: DyingObjects
    holder: str = ""
    batch: int = -1

    @property
    def local(self) -> LocalCheckpoint:
        return LocalCheckpoint(self.home / "checkpoint")

    @property
    def mirror(self) -> Mirror:
        return Mirror(self.local, self.objects)

    def files(self) -> dict[str, bytes]:
        return {name: (self.local.directory / name).read_bytes() for name in self.local.files()}

    def write(self, name: str, text: str) -> None:
        path = self.local.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / f".{path.name}.tmp").write_text(text)
        (path.parent / f".{path.name}.tmp").rename(path)


@dataclass
class World:
    """What must hold: a batch is committed by the driver that began last, and whoever begins has what it had read."""

    home: Path
    store: Any = field(default_factory=MemoryStore)
    machines: dict[int, Machine] = field(default_factory=dict)
    began_last: int | None = None
    committed: dict[str, bytes] = field(default_factory=dict)
    """The newest batch that a table has: its number and what it was to read."""
    count: int = 0

    def machine(self, number: int) -> Machine:
        if number not in self.machines:
            (self.home / str(number)).mkdir(parents=True)
            self.machines[number] = Machine(self.home / str(number), DyingObjects(self.store))
        return self.machines[number]

    def begin(self, number: int, dies_after: int | None) -> None:
        it = self.machine(number)
        # Its process is a new one: whatever the last one was about to do is over.
        it.holder, it.objects.left = "", dies_after
        before = Objects(self.store, "").names(MANIFESTS)
        try:
            it.holder = it.mirror.begin()
            self.began_last = number
        except Killed:
            # It may have put its copy: then the others are fenced although it never ran.
            if set(Objects(self.store, "").names(MANIFESTS)) != set(before):
                self.began_last = None
            return
        finally:
            it.objects.left = None
        found = it.files()
        assert all(found.get(name) == data for name, data in self.committed.items()), (found, self.committed)
        it.batch = max((int(name.split("/")[1]) for name in found if name.startswith("offsets/")), default=-1)

    def run(self, number: int, dies_after: int | None) -> None:
        """A batch: Spark plans it, the sink keeps the checkpoint and commits."""
        it = self.machine(number)
        if not it.holder:
            return
        self.count += 1
        it.write("metadata", "the query")
        it.write(f"offsets/{it.batch + 1}", f"read by {number}, {self.count}")
        it.write(f"state/0/0/{it.batch + 1}.changelog", "x" * (self.count % 7))
        if it.batch >= 0:
            it.write(f"commits/{it.batch}", "done")
        (it.local.directory / f"offsets/{it.batch - 5}").unlink(missing_ok=True)
        it.objects.left = dies_after
        try:
            it.mirror.send(it.holder)
        except Killed:
            it.holder = ""
            return
        except CheckpointTaken:
            assert self.began_last != number, "nobody began after it, and it is refused"
            it.holder = ""
            return
        finally:
            it.objects.left = None
        assert self.began_last == number, "another driver has begun, and this one may go on"
        it.batch += 1
        found = it.files()
        self.committed = {name: found[name] for name in (f"offsets/{it.batch}", "metadata")}

    def lose(self, number: int) -> None:
        it = self.machine(number)
        it.holder = ""
        shutil.rmtree(it.home)
        it.home.mkdir()

    def check_store(self) -> None:
        """Each copy that is there is whole, and there are few."""
        objects = Objects(self.store, "")
        packs = set(objects.names(PACKS))
        names = sorted(objects.names(MANIFESTS))
        for name in names[-2:]:
            data = objects.get(name)
            assert data is not None
            assert Manifest.of_json(data, name).packs <= packs


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "run", "run", "run", "lose"]),
        st.integers(0, 2),
        st.one_of(st.none(), st.integers(0, 8)),
    ),
    max_size=25,
)


@given(acts=ACTS)
def test_whoever_begins_has_what_was_committed_and_nobody_else_goes_on(acts: list[tuple[str, int, int | None]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        world = World(Path(home))
        for what, number, dies_after in acts:
            match what:
                case "begin":
                    world.begin(number, dies_after)
                case "run":
                    world.run(number, dies_after)
                case _:
                    world.lose(number)
            world.check_store()


def test_copies_and_packs_stay_few(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.begin(0, None)
    for _ in range(30):
        world.run(0, None)
    objects = Objects(world.store, "")
    assert len(objects.names(MANIFESTS)) == KEPT
    # What is kept of 30 batches is the newest seven, their commits and state, and the query's metadata.
    assert len(objects.names(PACKS)) <= 31
    world.begin(1, None)
    assert world.machine(1).files() == world.machine(0).files()


def test_a_large_file_is_copied_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("penstock.spark.checkpoints.manifest", "penstock.spark.checkpoints.mirror"):
        monkeypatch.setattr(f"{module}.PACK_BYTES", 64)
    world = World(tmp_path)
    it = world.machine(0)
    it.write("state/0/0/1.zip", "z" * 1_000)
    it.write("state/0/0/2.zip", "")
    it.write("metadata", "query")
    world.begin(0, None)
    world.lose(1)
    world.begin(1, None)
    assert world.machine(1).files() == it.files()


def test_a_disk_that_lost_its_files_but_not_the_note_is_no_checkpoint(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.begin(0, None)
    for _ in range(3):
        world.run(0, None)
    had = world.machine(0).files()
    shutil.rmtree(world.machine(0).local.directory)
    world.begin(0, None)
    assert world.machine(0).files() == had


def test_a_store_that_overwrites_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)
    it = world.machine(0)

    def overwriting(self: Objects, name: str, data: bytes) -> bool:
        self.put(name, data)
        return True

    monkeypatch.setattr(DyingObjects, "put_new", overwriting)
    with pytest.raises(PutsOverwrite, match="could not be told apart"):
        it.mirror.begin()
    assert Objects(world.store, "").names(MANIFESTS) == []


def test_a_copy_that_lost_bytes_is_not_taken_for_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.begin(0, None)
    world.run(0, None)
    objects = Objects(world.store, "")
    for pack in objects.names(PACKS):
        objects.put(pack, b"")
    with pytest.raises(StoreFailed, match="lacks bytes"):
        world.begin(1, None)
    assert not world.machine(1).local.directory.exists()


def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    it = world.machine(0)
    it.write("metadata", "query")
    world.begin(0, None)
    objects = Objects(world.store, "")
    name = max(objects.names(MANIFESTS))
    told = objects.get(name)
    assert told is not None
    objects.put(name, told.replace(b'"metadata"', b'"../../metadata"'))
    with pytest.raises(SparkRoomError, match="outside of itself"):
        world.begin(1, None)
