"""A whole cluster under a seed: real nodes and clients in virtual time, on simulated machines that fail.

    from penstock.testing.sim import run

    story = run(seed=7)
    print(story.text())

Duty: run the real composition root (`server.node`) through its four ports on a deterministic world, hurt it as the seed
says, and check after every event that what must never happen has not. May import everything below `cli`.

Invariants of the simulator itself: the same seed gives the same events, whatever PYTHONHASHSEED is; a node that was
killed does nothing any more; bytes that were synced survive everything; TCP keeps its order.

Read `cluster.py` first (one run from begin to end), then `world.py` (what all share), `scheduler.py` and `loop.py`
(time), `network.py` and `wire.py`, `disk.py`, `machine.py` (the lives of a node), `founding.py` (its disk is made)
with `ages.py` (and may be old), `plan.py` (what the seed decides), `acts/` with `trouble.py` and `administrator.py`
(what happens to a cluster), `topics.py`, `workload.py`, `versions.py` and `news.py` (its clients), `truth.py` and
`history.py` (what was committed and what was promised), `invariants.py`, `activities.py` and `replicas.py` (what is
checked), `doors.py` (who is let in, in the secured world), `transactions/` (the world with transactions) and
`story.py` (what is told).
"""

from penstock.testing.sim.cluster import run
from penstock.testing.sim.plan import Plan
from penstock.testing.sim.story import Story

__all__ = ["Plan", "Story", "run"]
