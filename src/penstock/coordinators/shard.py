"""What a coordinator has to be so that the one runtime (`server/coordinating/`) can run it.

| the runtime says | when | the shard |
|---|---|---|
| `see` | before it is asked anything, and with `image_changed` | knows the cluster |
| `apply` | a record was read at load, or has just been written | changes what is durable: the only place |
| `apply_pending` | the same, of a transaction that is open in its partition | keeps it apart |
| `on_marker` | the marker of that transaction was read or written | takes it in, or forgets it |
| `loaded` | once, when the log is replayed to its end | sets its clocks |
| `led` | after `loaded`, and whenever this node goes on to lead in another epoch | decides again what has to leave |
| `demand_of`, `decide` | a request has come | answers, or keeps the token |
| `expire` | `next_deadline` has come, and the log can be written | does what is due |
| `image_changed` | the cluster is another | does what follows |
| `unload` | it is dropped: led elsewhere, or it cannot be trusted any more | answers those whom it held back |

Decisions are carried out one at a time and in order: written, then applied, before the shard is asked for the next one.
That holds for every step of what `loaded`, `led`, `expire` and `image_changed` give too; between two of their steps the
shard may be asked other things. A decision of theirs may be empty: it is a place to rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Protocol

from penstock.coordinators.decision import Answer, Caller, Decision, Moment, StateRecord
from penstock.metadata.delta import Delta
from penstock.metadata.image import ClusterImage
from penstock.model.ids import Epoch, Millis, Offset


class Demand(Enum):
    """What a request may want of the runtime."""

    READS = "never writes, so it is served while the log cannot be written"
    WRITES = "may write, and is answered when that is committed"
    WAITS = "may write, and may be held back until something else happens"


class Shard(Protocol):
    """The part of a coordinator's state that lives in one partition of its internal topic."""

    def demand_of(self, request: object) -> Demand:
        """Asked first: a request that never waits needs no token, one that never writes no log."""

    def decide(self, request: object, caller: Caller, now: Moment) -> Decision:
        """What to write and to answer. Errors are in the reply; no reply means that the request is held back."""

    def apply(self, record: StateRecord, offset: Offset) -> None:
        """Takes in one record, just written or replayed; `offset` is its place in the log."""

    def apply_pending(self, producer_id: int, record: StateRecord, offset: Offset) -> None:
        """Takes in one record of a transaction that is open: it counts when `on_marker` says so, and not before."""

    def on_marker(self, producer_id: int, *, committed: bool) -> None:
        """A transaction of the producer has ended in this partition. Nothing of it may be known here."""

    def loaded(self, now: Moment) -> Iterator[Decision]:
        """After the replay, which may have brought records that are not committed yet."""

    def led(self, epoch: Epoch, now: Moment) -> Iterable[Decision]:
        """This node leads in `epoch`, which counts at once; decisions may follow step by step.

        Effects that were decided in an earlier epoch and had not left yet are void, those that had left may have been
        refused by now: all that still has to happen is decided again. An empty tuple costs the runtime nothing.
        """

    def next_deadline(self) -> Millis | None:
        """The tick at which to call `expire`; no later than the first deadline."""

    def expire(self, now: Moment) -> Iterator[Decision]:
        """Everything that is due."""

    def see(self, image: ClusterImage) -> None:
        """The cluster is as `image` says. What follows from that `loaded` or `image_changed` decides."""

    def image_changed(self, image: ClusterImage, delta: Delta, now: Moment) -> Iterator[Decision]:
        """The cluster is as `image` says, which it was not before."""

    def unload(self) -> list[Answer]:
        """Answers to requests that are held back. Those that are not among them are told NOT_COORDINATOR."""
