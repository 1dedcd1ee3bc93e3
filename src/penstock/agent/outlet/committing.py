"""What the outlet knows of transactions, with `exactly_once`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from penstock.agent.outlet.marks import SpoolMarks


class Transactions(Protocol):
    """Whoever begins and ends the transactions of an outlet's producer."""

    @property
    def open(self) -> bool:
        """Whether shipments may take off now."""

    @property
    def closed_since_ms(self) -> float:
        """When shipments could last take off; of the monotonic clock."""

    @property
    def number(self) -> int:
        """Of the transaction that is open, or whose end is not known."""

    def took_off(self, size_bytes: int, /) -> None:
        """A shipment is in the transaction."""

    def spoiled(self) -> None:
        """Some of it was refused: only an abort is left."""

    def give_up(self) -> bool:
        """Brokers are silent: whether what is in the transaction is given back, for a spool to take it."""

    def hurry(self) -> None:
        """Somebody waits for the commit."""

    def marks(self, input: str, /) -> SpoolMarks:
        """Of the spool of an input."""

    async def replace(self, settings: Mapping[str, Any], unknown_topic_after_ms: int, within_ms: float, /) -> None:
        """Goes on with another producer."""
