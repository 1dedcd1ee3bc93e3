"""A pipeline file that cannot be run."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.declared.mistakes import Mistake
from penstock.spark.errors import SparkRoomError


class FlowBroken(SparkRoomError):
    """A pipeline file that cannot be run; `mistakes` has all that was found, in the order of the file."""

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        super().__init__("\n".join(mistake.at(file) for mistake in mistakes))
        self.file, self.mistakes = file, tuple(mistakes)

    def __reduce__(self) -> tuple[type[FlowBroken], tuple[str, tuple[Mistake, ...]]]:
        return FlowBroken, (self.file, self.mistakes)
