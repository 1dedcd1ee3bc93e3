"""An earlier revision of this code as one more broker, so that two versions are measured in one run on one machine.

Ratios to Kafka carry from one run to the next, but not from one kind of processor to another: there the code of the
earlier run is measured anew, beside the code of today.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from bench.places import ROOT
from tests.compat.cluster import ClusterNode, PenstockCluster
from tests.compat.judged import Penstock

INSTALLED = ROOT / ".cache" / "earlier"
_REVISION = INSTALLED / "revision"


class Unknown(Exception):
    """No such revision, or it cannot be built."""


def resolved(revision: str) -> str:
    """The whole name of a revision."""
    return _said("git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").strip()


def current() -> str:
    """The revision that is measured; nothing outside of a clone."""
    try:
        return resolved("HEAD")
    except Unknown:
        return ""


def revision_of(path: Path) -> str:
    """The revision in which a file was written last."""
    return _said("git", "-C", str(ROOT), "log", "-1", "--format=%H", "--", str(path)).strip()


def prepare(revision: str) -> None:
    """Installs the revision, with compiled kernels, beside this code. What is there already stays."""
    if _REVISION.exists() and _REVISION.read_text() == revision:
        return
    with tempfile.TemporaryDirectory(prefix="penstock-earlier-") as source:
        _said("git", "-C", str(ROOT), "worktree", "add", "--detach", f"{source}/code", revision)
        try:
            _said("rm", "-rf", str(INSTALLED))
            _said(
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--target",
                str(INSTALLED),
                f"{source}/code",
            )
        finally:
            _said("git", "-C", str(ROOT), "worktree", "remove", "--force", f"{source}/code")
    _REVISION.write_text(revision)


def _said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Unknown(f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def _as_it_was(command: list[str]) -> list[str]:
    """The same command with the earlier code first in the path; `env` gives its process to the command."""
    return ["env", f"PYTHONPATH={INSTALLED}", *command]


class EarlierPenstock(Penstock):
    def command(self) -> list[str]:
        return _as_it_was(super().command())

    def format_command(self) -> list[str]:
        return _as_it_was(super().format_command())


class EarlierCluster(PenstockCluster):
    title = "Penstock before"

    def command(self, node: ClusterNode) -> list[str]:
        return _as_it_was(super().command(node))

    def format_command(self, node: ClusterNode, voters: str) -> list[str]:
        return _as_it_was(super().format_command(node, voters))
