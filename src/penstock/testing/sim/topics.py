"""The topics that a simulated cluster works on, and what each is there to show."""

from __future__ import annotations

ORDERS = "orders"
"""Written with acks=all and read by a group; grows and moves. Nothing of it may go."""

LOOSE = "loose"
"""Written with acks=1: what is committed stays, and nothing else is promised."""

BRIEF = "brief"
"""Short of time or bytes: every replica deletes on its own, and DeleteRecords does too."""

KEYED = "keyed"
"""Compacted: the last record of every key stays, and a tombstone for a while."""

AGAIN = "again"
"""Deleted and made anew under its name while others write and read it."""

DOORS = "doors"
"""Of the secured world: guests write and read it, when they may."""

LEDGER = "ledger"
"""Of the world with transactions: written in them, read by everybody, copied. Nothing of it may go."""

COPIES = "copies"
"""Where the committed records of the ledger are copied to, each once and in order."""

ALONE = "alone"
"""Of some worlds with transactions: each partition has one replica, and nobody leads it while that is away."""

KEPT = (
    {"retention.ms": "2000", "segment.ms": "1000"},
    {"retention.bytes": "1000", "segment.ms": "500"},
    {"retention.ms": "1000", "retention.bytes": "1000", "segment.ms": "500"},
    {"retention.ms": "1500", "internal.segment.bytes": "1000"},
    {"retention.bytes": "2000", "internal.segment.bytes": "1200"},
)
"""What the brief topic may keep: some seconds, some bytes, or whichever is less. Clocks may be minutes apart."""

COMPACTED = (
    {"segment.ms": "500", "delete.retention.ms": "1000"},
    {"internal.segment.bytes": "1000", "delete.retention.ms": "300"},
    {"internal.segment.bytes": "2000", "delete.retention.ms": "60000", "min.compaction.lag.ms": "300"},
    {"segment.ms": "400", "delete.retention.ms": "500", "max.compaction.lag.ms": "1000"},
)
"""How the keyed topic is compacted."""
