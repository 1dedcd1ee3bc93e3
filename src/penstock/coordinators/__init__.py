"""Coordinators: state machines whose state lives in a partition of an internal topic.

Floor 3, pure: no clock, loop, socket, file or global randomness. Time comes in with every call, randomness through the
constructor, facts about topics as a `ClusterImage`. A shard is one partition of the internal topic; whoever leads that
partition runs the shard.

The rhythm: `decide` looks and answers with a `Decision`; the runtime writes its records as one batch; `apply` is the
only place where durable state changes, and the same call replays the log at load. What no record holds (who waits for
a join, when a session ends) may change in `decide`: it is lost with the shard, and clients make up for it. Effects
(calls to others that follow from a decision) are lost with it too, and decided again by the next shard of the log.

Every coordinator is a `Shard` (`shard.py`) of the one runtime in `server/coordinating/`.

Read `decision.py` first, then `shard.py` and `timers.py`, then `groups/` and `transactions/`.
"""
