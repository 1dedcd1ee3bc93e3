"""`penstock dev --demo`: gives the demo a cluster of `penstock dev` and a terminal, and says what is missing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.cli.dev_processes import kill, stop_all, wait_ready
from penstock.cli.dev_secure import SECURITY
from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    from penstock.cli.dev_cluster import DevCluster
    from penstock.demo.plan import Plan

EXTRA: Final = ("pyspark", "pyarrow", "deltalake", "duckdb")
"""What `penstock[spark]` brings and the demo needs."""
ACTORS_WITHIN_S: Final = 40.0
LINE_WIDTH: Final = 120
"""Where there is no terminal that has one."""
LOG_LEVEL, LOG_FORMAT = "info", "text"


class DevNodes:
    """The nodes of a folder, as the demo asks for them (`penstock.demo.nodes.Nodes`)."""

    def __init__(self, cluster: DevCluster) -> None:
        self._cluster = cluster
        # Those that are asked again must be the same objects: each knows its child and where its log began.
        self._nodes = {node.node_id: node for node in cluster.processes()}

    @property
    def folder(self) -> Path:
        return self._cluster.folder

    @property
    def bootstrap(self) -> str:
        return self._cluster.bootstrap

    @property
    def security(self) -> Path:
        return self._cluster.folder / SECURITY

    @property
    def ids(self) -> list[int]:
        return list(self._nodes)

    def start_all(self) -> None:
        for node in self._nodes.values():
            node.start(log_level=LOG_LEVEL, log_format=LOG_FORMAT)
        wait_ready(self._nodes.values())

    def kill(self, node_id: int) -> int | None:
        return kill(self._nodes[node_id])

    def start(self, node_id: int) -> None:
        node = self._nodes[node_id]
        node.start(log_level=LOG_LEVEL, log_format=LOG_FORMAT)
        wait_ready([node])

    def end_all(self) -> None:
        stop_all(self._nodes.values())


def run(plan: Plan, *, nodes: int, data_dir: str | None) -> int:
    """The exit code of the demo."""
    check_installed()
    from rich.console import Console

    from penstock.cli.dev_cluster import create
    from penstock.demo.plan import NODE_SETTINGS
    from penstock.demo.running import run as play

    with _folder(data_dir, keep=plan.keep) as folder:
        cluster = create(folder, nodes=nodes, port=0, overrides=NODE_SETTINGS, secure=True)
        console = Console()
        if not console.is_terminal:
            console.width = LINE_WIDTH
        return play(DevNodes(cluster), plan, console)


def check_installed() -> None:
    """PenstockError with one sentence: what to install."""
    from importlib.util import find_spec

    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        raise PenstockError(f"the demo needs {', '.join(missing)}: pip install 'penstock[spark]'")
    from penstock.spark.sessions import check_java

    check_java()


@contextmanager
def _folder(given: str | None, *, keep: bool) -> Iterator[Path]:
    """A folder that was named stays, and so does what is kept; any other one goes."""
    if given is not None:
        folder = Path(given)
        if folder.exists() and any(folder.iterdir()):
            raise PenstockError(f"{folder} is not empty: name another --data-dir, or remove it")
        yield folder
    elif keep:
        yield Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    else:
        with tempfile.TemporaryDirectory(prefix="penstock-demo-", ignore_cleanup_errors=True) as scratch:
            yield Path(scratch)


def stop_kept(folder: Path) -> list[str]:
    """Ends what `dev --demo --keep` left beside the nodes of a folder; the names of what ended."""
    if not (folder / "demo.json").exists():
        return []
    from penstock.demo.processes import end_remembered

    return end_remembered(folder, ACTORS_WITHIN_S)
