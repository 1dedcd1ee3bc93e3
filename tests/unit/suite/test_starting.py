"""A stream whose source had no processor is started again, one that failed for any other reason is not."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.spark.starting import TOO_LATE, started


@dataclass
class Query:
    """Begins at the first looks; then it runs, or has failed."""

    failure: str = ""
    looks: int = 0
    isActive: bool = True  # noqa: N815  # as Spark spells it

    @property
    def status(self) -> dict[str, str]:
        self.looks += 1
        self.isActive = not self.failure or self.looks < 3
        return {"message": "Initializing sources" if self.looks < 3 else "Waiting for data to arrive"}

    def exception(self) -> Exception | None:
        return RuntimeError(self.failure) if self.failure else None


@dataclass
class Writer:
    failures: list[str]
    places: list[str] = field(default_factory=list)

    def start(self, where: str) -> Query:
        self.places.append(where)
        return Query(self.failures.pop(0))


@pytest.mark.parametrize(
    ("failures", "starts"),
    [([""], 1), (["no such topic"], 1), ([f"STREAM_FAILED: {TOO_LATE}.", f"{TOO_LATE}.", ""], 3)],
)
def test_only_a_source_that_came_too_late_is_started_again(failures: list[str], starts: int) -> None:
    last, writer = failures[-1], Writer(failures)
    query = started(writer, "here")
    assert (writer.places, query.failure) == (["here"] * starts, last)  # type: ignore[attr-defined]  # one of ours
