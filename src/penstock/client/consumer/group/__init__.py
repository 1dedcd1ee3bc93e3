"""A consumer's membership in a group, by either protocol, with its commits.

`GroupSession` (session.py) is what the consumer holds: one background task, one connection of its own to the
coordinator. It obeys a machine, `ClassicMember` or `ConsumerMember`, which decides everything: the machines are pure,
get the time with every call and answer with effects (effects.py). So the tests run them by script, without a loop.

May import client, transport and below. Invariants: partitions are given up only after `hooks.revoke` returned, unless
they are lost already; heartbeats go on while a hook runs; nothing waits for ever; nothing polls.

Read `effects.py` first, then `classic_member.py` and `consumer_member.py`, `session.py`, `commits.py`; who gets which
partition in a classic group is in `assignors/`.
"""
