"""Feature levels as clients are told them: the door `features`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.metadata.features import KRAFT_VERSION, SUPPORTED

if TYPE_CHECKING:
    from penstock.server.quorum.metadata_driver import PublishedMetadata


class Features:
    """What this release supports, and what the published image has finalized. `kraft.version` is the quorum's own."""

    def __init__(self, metadata: PublishedMetadata, kraft_version: Callable[[], int]) -> None:
        self._metadata, self._kraft_version = metadata, kraft_version

    def supported(self) -> dict[str, tuple[int, int]]:
        return {name: (levels.min, levels.max) for name, levels in SUPPORTED.items()}

    def finalized(self) -> tuple[int, dict[str, int]]:
        """(epoch, name → level); the epoch is the offset of the image, so it rises with every change."""
        image = self._metadata.image
        levels = dict(image.features)
        if kraft_version := self._kraft_version():
            levels[KRAFT_VERSION] = kraft_version
        return image.offset, levels
