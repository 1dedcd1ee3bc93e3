"""What the demo asks of a cluster. The command line gives one: the nodes of `penstock dev`, each a process."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Nodes(Protocol):
    """Every call waits until it is true; PenstockError says why it does not become so."""

    @property
    def folder(self) -> Path: ...

    @property
    def bootstrap(self) -> str: ...

    @property
    def security(self) -> Path:
        """Where the files are that one logs in with."""

    @property
    def ids(self) -> list[int]: ...

    def start_all(self) -> None:
        """Returns when all serve."""

    def kill(self, node_id: int) -> int | None:
        """kill -9; the process that is gone."""

    def start(self, node_id: int) -> None:
        """Brings one back; returns when it serves."""

    def end_all(self) -> None:
        """Whatever runs of them is gone afterwards. Nobody wants their data any more."""
