"""From a portion to shipments: what is charged, counted and told to be done."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from penstock.agent.channel import PORTION_OVERHEAD_BYTES, Channel
from penstock.agent.counting import Counts
from penstock.agent.outlet.memory import MemoryGate
from penstock.agent.portion import EVENT_OVERHEAD_BYTES, Parcel, Portion
from penstock.agent.settings import examine

FILE = 'name = "x"\n[inputs.in]\ntype = "stdin"\ntopic = "lines"\ndead_letters = "dead.{input}"\n'


class Lane:
    """Takes what is shipped and keeps it."""

    def __init__(self) -> None:
        self.share = MemoryGate(1 << 20).share()
        self.counts = Counts()
        self.shipped: list[tuple[list[Parcel], int, str | None]] = []

    def ship(self, parcels: list[Parcel], size_bytes: int, dead_letters: str | None, done: object) -> None:
        self.shipped.append((parcels, size_bytes, dead_letters))


def channel(transforms: str = "") -> tuple[Channel, Lane]:
    settings = examine(FILE + transforms, Path("/agent.toml"), {}).settings
    assert settings is not None
    lane = Lane()
    return Channel(settings.inputs["in"], "here", lane), lane  # type: ignore[arg-type]  # all that a channel uses


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_lines_without_transforms_are_handed_on_as_they_are() -> None:
    way, lane = channel()

    async def work() -> None:
        portion = Portion(way.origin(path="/f"), [b"a", b"b"])
        await way.put(portion, lambda: None)
        ((parcels, size, dead),) = lane.shipped
        assert parcels[0].values is portion.values
        assert (size, dead) == (2 + 2 * EVENT_OVERHEAD_BYTES + PORTION_OVERHEAD_BYTES, "dead.in")
        assert lane.share.used_bytes == size

    run(work())


def test_what_is_charged_is_what_became_of_it() -> None:
    way, lane = channel('[[inputs.in.transforms]]\nparse = "json"\n[[inputs.in.transforms]]\ndrop = ["big"]\n')

    async def work() -> None:
        await way.put(Portion(way.origin(), [b'{"a": 1, "big": "' + b"x" * 1_000 + b'"}']), lambda: None)
        ((parcels, size, _),) = lane.shipped
        assert parcels[0].values == [b'{"a":1}']
        assert lane.share.used_bytes == size == len(b'{"a":1}') + EVENT_OVERHEAD_BYTES + PORTION_OVERHEAD_BYTES

    run(work())


def test_a_portion_that_is_filtered_out_is_done_later_and_holds_nothing() -> None:
    way, lane = channel("[[inputs.in.transforms]]\nfilter = \"message == 'keep'\"\n")
    done: list[int] = []

    async def work() -> None:
        assert way.offer(Portion(way.origin(), [b"drop", b"drop"]), lambda: done.append(1))
        assert done == []
        await asyncio.sleep(0)
        assert done == [1]
        assert lane.shipped == []
        assert (lane.counts.events_in, lane.counts.filtered, lane.share.used_bytes) == (2, 2, 0)

    run(work())


def test_an_offer_that_does_not_fit_changes_nothing() -> None:
    way, lane = channel()

    async def work() -> None:
        assert way.roomy
        large = Portion(way.origin(), [bytes(1 << 20)], size_bytes=(1 << 20) - PORTION_OVERHEAD_BYTES)
        assert way.offer(large, lambda: None)
        assert not way.roomy
        assert not way.offer(Portion(way.origin(), [b"x"]), lambda: None)
        assert (len(lane.shipped), lane.counts.events_in) == (1, 1)

    run(work())


def test_times_that_cannot_be_read_are_counted() -> None:
    way, lane = channel('timestamp = "at"\n[[inputs.in.transforms]]\nparse = "json"\n')

    async def work() -> None:
        await way.put(Portion(way.origin(), [b'{"at": "2026-11-01T00:00:00Z"}', b'{"at": "soon"}']), lambda: None)
        assert (lane.counts.events_in, lane.counts.untimed, lane.counts.failed) == (2, 1, 0)

    run(work())
