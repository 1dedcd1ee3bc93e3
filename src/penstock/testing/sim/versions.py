"""Clients of many ages: what a client knows of each API ends with some version that is still served."""

from __future__ import annotations

from random import Random

from penstock.metadata.features import TRANSACTION_VERSION
from penstock.protocol.registry import APIS
from penstock.transport.dial import Link

Caps = dict[int, int]
"""The newest version that a client knows, of every API."""

END_TXN = 26
EPOCH_PER_TRANSACTION = 5
"""The version of EndTxn from which on a client knows what `transaction.version` 2 means."""

OURS_BEGIN = {3: 9}
"""Where our own client begins, if that is after the oldest version."""


class AgedLink(Link):
    """A connection of a client that does not know the newest versions, whatever its peer serves."""

    __slots__ = ()

    async def negotiate(self, name: str = "penstock", version: str = "0", timeout_ms: float = 30_000) -> None:
        await super().negotiate(name, version, timeout_ms)
        caps: Caps = self.loop.caps  # type: ignore[attr-defined]  # only loops of such clients have these links
        self.versions = {key: (low, min(high, caps.get(key, high))) for key, (low, high) in self.versions.items()}
        if caps.get(END_TXN, EPOCH_PER_TRANSACTION) < EPOCH_PER_TRANSACTION:
            self.features = {name: level for name, level in self.features.items() if name != TRANSACTION_VERSION}


def draw_caps(random: Random) -> Caps:
    """The oldest version of every API, the newest, or any for itself."""
    age = random.choice(("oldest", "any", "newest"))
    caps = {}
    for key, api in sorted(APIS.items()):
        oldest = min(api.max, max(api.min, OURS_BEGIN.get(key, api.min)))
        any_version = random.randint(oldest, api.max)
        caps[key] = {"oldest": oldest, "any": any_version, "newest": api.max}[age]
    return caps
