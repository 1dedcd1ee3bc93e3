"""Follows files as they grow, through rotations, copies, truncations, compression and restarts.

    finding: paths by glob ──▶ identity: which known file is it? ──▶ schedule: whose turn ──▶ lines ──▶ Channel
                                        ▲                                                        │
              lineages: what was rotated│unseen                                                  │
                        checkpoints ────┘◀──────────── ledger: safe up to the first gap ◀── done()

A file is its device, inode and beginning, and what stood right before the position up to which it was read. Invariants:
what was written to a file that is still reachable, under its own name or beside it, is read at least once; what is not
reachable any more is told; a position is saved only when everything before it is done; when in doubt a file is read
from its beginning (`identity.py` says when). Begin with `identity.py`, then `input.py`, then `lineages.py`.
"""
