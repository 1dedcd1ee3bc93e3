"""A disk for data that nobody will miss: the real one, without the waiting for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.storage.files import DiskFiles


class PassingFiles(DiskFiles):
    """Files that are gone with the test. What a sync would save from a power cut dies with the process anyway."""

    def __init__(self, max_open: int | None = None) -> None:
        super().__init__(max_open)
        self._syncs.put_off = True

    def write_atomic(self, path: str, data: bytes) -> None:
        with open(path + ".tmp", "wb") as file:
            file.write(data)
        os.replace(path + ".tmp", path)

    @contextmanager
    def one_sync(self, path: str) -> Iterator[None]:
        yield
