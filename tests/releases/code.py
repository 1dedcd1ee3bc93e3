"""The code of earlier releases, as archives beside this file: what a node of one needs to run, and nothing else.

`python -m tests.releases.code COMMIT tests/releases/penstock-NAME.tar.xz` makes one; it belongs into every release.
`penstock-0.1.0` is 0.1.0 as it stood when `effe9ec` was its newest commit, the last one before followers told their
leaders of their own retention and refusals were encoded in every version: old enough to differ in what nodes say to
each other. The data directory `0.1.0.tar.xz` is older still, of a time when a cluster was one node.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import penstock

CODE = sorted(Path(__file__).parent.glob("penstock-*.tar.xz"))
ROOMS_APART = ("agent", "bench", "demo", "spark", "testing")
"""What runs beside nodes and is not needed by them."""
SOURCES_OF_KERNELS = (".pyx", ".pxi", ".h")


def unpack(archive: Path, folder: Path) -> Path:
    """What goes into PYTHONPATH, so that `penstock` is this release; other packages are those of today.

    Kernels are not compiled again: where their sources have not changed they are those of today, and elsewhere the
    release runs on their Python twin, which is slower and otherwise the same.
    """
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    there, here = folder / "penstock" / "kernels", Path(penstock.__file__).parent / "kernels"
    if _sources(there) == _sources(here):
        for compiled in here.glob("*.so"):
            (there / compiled.name).symlink_to(compiled)
    return folder


def _sources(kernels: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in kernels.iterdir() if path.suffix in SOURCES_OF_KERNELS}


def pack(commit: str, archive: Path) -> None:
    command = ["git", "archive", "--format=tar", "--prefix=release/", commit, "src/penstock"]
    whole = subprocess.run(command, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(whole)) as source, tarfile.open(archive, "w:xz", preset=9) as target:
        for member in source:
            _, _, name = member.name.partition("src/")
            if member.isfile() and name.split("/")[1] not in ROOMS_APART:
                member.name = name
                target.addfile(member, source.extractfile(member))


if __name__ == "__main__":
    pack(sys.argv[1], Path(sys.argv[2]))
