"""Coordinators: state machines whose state lives in a partition of an internal topic.

Floor 3, pure: no clock, loop, socket, file or global randomness. Time comes in with every call, randomness through the
constructor, facts about topics as a `ClusterImage`. A shard is one partition of the internal topic; whoever leads that
partition runs the shard.

The rhythm: `decide` looks and answers with a `Decision`; the driver writes its records as one batch; `apply` is the
only place where durable state changes, and the same call replays the log at load. What no record holds (who waits for
a join, when a session ends) may change in `decide`: it is lost with the shard, and clients make up for it.

Read `decision.py` first, then `timers.py`, then `groups/`.
"""
