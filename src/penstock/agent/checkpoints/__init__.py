"""How far each file is safe, on disk: one SQLite database for all inputs of an agent.

A row says of one file of one input up to where everything is acknowledged, and by which facts the file is known
again. What `save` returned from survives a crash of the machine; a `save` that fails changed nothing, and may be tried
again. Begin with `store.py`. With `exactly_once` rows go into transactions as `Change`s, and here after them.
"""

from penstock.agent.checkpoints.changes import Change, Source
from penstock.agent.checkpoints.row import Row
from penstock.agent.checkpoints.store import Checkpoints, CheckpointsBroken, CheckpointsUnwritable

__all__ = ["Change", "Checkpoints", "CheckpointsBroken", "CheckpointsUnwritable", "Row", "Source"]
