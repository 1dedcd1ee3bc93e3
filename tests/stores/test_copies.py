"""Copies of a checkpoint in an object store, made by processes that are killed with kill -9 in the middle of one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.spark.checkpoints.keeping import begin, forget, keep
from penstock.spark.checkpoints.mirror import CheckpointTaken
from tests.object_store import ObjectStore
from tests.patience import within

ROOT = Path(__file__).parents[2]

# It keeps batch after batch, and dies at a request of the second one: before a pack is there, before or after its
# manifest is.
DYING = """
import json, os, signal, sys
from pathlib import Path
from penstock.spark.checkpoints.keeping import begin, keep
from penstock.spark.checkpoints.objects import Objects

local, place, storage, point = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
option = begin(local, place, storage)

def batch(number):
    for folder in ("offsets", "state/0/0"):
        path = Path(local) / folder / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{folder} of {number}")

batch(0)
keep(local, option)
put, put_new = Objects.put, Objects.put_new

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def dying_put(self, name, data):
    if point == "before-pack":
        die()
    put(self, name, data)

def dying_put_new(self, name, data):
    if point == "before-manifest":
        die()
    put_new(self, name, data)
    die()

Objects.put, Objects.put_new = dying_put, dying_put_new
batch(1)
keep(local, option)
"""


@pytest.mark.parametrize("point", ["before-pack", "before-manifest", "after-manifest"])
def test_a_copy_that_is_broken_off_is_whole_or_not_there(
    bucket: str, store_server: ObjectStore, tmp_path: Path, point: str
) -> None:
    place = f"s3://{bucket}/checkpoints/lake"
    here, there = tmp_path / "here" / "lake", tmp_path / "there" / "lake"
    command = [sys.executable, "-c", DYING, str(here), place, json.dumps(dict(store_server.settings)), point]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=within(60), check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    batches = {0, 1} if point == "after-manifest" else {0}

    option = begin(str(there), place, store_server.settings)
    assert texts(there) == {f"{folder}/{n}": f"{folder} of {n}" for n in batches for folder in ("offsets", "state/0/0")}

    # The first disk was not lost after all. Whoever begins on it has what the other one has meanwhile.
    (there / "offsets" / "2").write_text("of the other")
    keep(str(there), option)
    again = begin(str(here), place, store_server.settings)
    assert texts(here) == texts(there)
    (there / "offsets" / "3").write_text("too late")
    with pytest.raises(CheckpointTaken, match=r"belongs to a driver on .*, since 20"):
        keep(str(there), option)
    keep(str(here), again)

    left = store_server.objects(f"{bucket}/checkpoints/lake")
    assert not any(b"too late" in data for name, data in left.items() if name.startswith("manifests"))
    forget(str(here), place, store_server.settings)
    assert store_server.objects(f"{bucket}/checkpoints/lake") == {}


def texts(directory: Path) -> dict[str, str]:
    return {str(each.relative_to(directory)): each.read_text() for each in directory.rglob("*") if each.is_file()}
