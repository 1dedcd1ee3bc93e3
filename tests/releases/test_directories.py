"""Every data directory in this folder opens, shows what it held, and takes more."""

from __future__ import annotations

import asyncio
import tarfile
from pathlib import Path

import pytest

from penstock.blocking import Admin, Consumer, Producer
from penstock.metadata.features import TRANSACTION_VERSION
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


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_a_cluster_of_an_earlier_release_takes_transactions(archive: Path, tmp_path: Path) -> None:
    """Classic ones, until `transaction.version` is raised; beside the records of then."""
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    shown = {"offset_reset": "earliest", "isolation_level": "read_committed"}
    with broker(data_dir=str(tmp_path)) as running, Admin(bootstrap_servers=running.bootstrap_servers) as admin:
        for level in (0, 2):
            if level:
                admin.update_features({TRANSACTION_VERSION: level})
            with Producer(running.bootstrap_servers, transactional_id="writer") as producer:
                with producer.transaction():
                    producer.send("emptied", f"level {level}", key="k", partition=0)
                producer.begin()
                producer.send("emptied", "aborted", key="k", partition=0)
                producer.abort()
        with Consumer("emptied", bootstrap_servers=running.bootstrap_servers, **shown) as consumer:
            assert [record.value for _, record in zip(range(2), consumer, strict=False)] == [b"level 0", b"level 2"]


def test_there_is_a_directory_of_every_release() -> None:
    assert [path.name for path in ARCHIVES] == ["0.1.0.tar.xz"]
