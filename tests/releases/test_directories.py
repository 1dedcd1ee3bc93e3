"""Every data directory in this folder opens, shows what it held, and takes more."""

from __future__ import annotations

import asyncio
import tarfile
from pathlib import Path

import pytest

from penstock.testing import broker
from tests.releases.contents import CODECS, TOPIC, TRIMMED_BEFORE, read, records

ARCHIVES = sorted(Path(__file__).parent.glob("[0-9]*.tar.xz"))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_a_directory_of_an_earlier_release_shows_what_it_held(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    with broker(data_dir=str(tmp_path)) as running:
        found = asyncio.run(read(running.bootstrap_servers))
    rows = [(r.key, r.value) for codec in CODECS for r in records(codec)]
    assert found["records"] == [(at, *row) for at, row in enumerate(rows)][TRIMMED_BEFORE:]
    _, configs, ends = found["topics"][TOPIC]
    assert configs == {"retention.ms": "-1", "segment.bytes": "1048576"}
    assert ends == [(TRIMMED_BEFORE, len(rows)), (0, 0)]
    assert found["topics"]["emptied"][1] == {"cleanup.policy": "compact"}
    assert found["by time"] == TRIMMED_BEFORE, "record 2 is the first of that time, but it was deleted"


def test_there_is_a_directory_of_every_release() -> None:
    assert [path.name for path in ARCHIVES] == ["0.1.0.tar.xz"]
