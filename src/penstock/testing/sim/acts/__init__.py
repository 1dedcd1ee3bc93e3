"""Everything that happens to a cluster beside the work of its clients, one act after another as the seed says.

Duty: the tables of acts. A *chore* is asked of the cluster by its administrator, a *mishap* befalls it. Which of them
take part in a world, and how often, is drawn into the plan (`drawing.py`); `administrator.py` and `trouble.py` say what
an act is, and perform those that they are given. An act is counted in the story when it had its effect. What nodes do
by themselves (retention, rolls, compaction, checkpoints, expiry) is no act: `activities.py` counts it from outside.

A new act is a function in the module of its subject and a line in that module's table.
"""

from penstock.testing.sim.acts import brokers, configs, disks, groups, machines, network, places, records, topics
from penstock.testing.sim.administrator import Chore
from penstock.testing.sim.trouble import Mishap

CHORES: tuple[Chore, ...] = (
    *topics.CHORES, *records.CHORES, *configs.CHORES, *places.CHORES, *groups.CHORES, *brokers.CHORES,
)  # fmt: skip
MISHAPS: tuple[Mishap, ...] = (*machines.MISHAPS, *network.MISHAPS, *disks.MISHAPS)

__all__ = ["CHORES", "MISHAPS", "Chore", "Mishap"]
