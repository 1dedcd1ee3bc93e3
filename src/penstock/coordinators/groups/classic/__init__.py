"""The classic protocol: members join, one of them leads and assigns, all sync, and heartbeats keep them in.

A group is Empty, or Stable at a generation, and that is what its record says. In between it prepares a rebalance (waits
for members to join again) and completes it (waits for the leader's assignment); that part is not durable: after a
failover the group stands at its last record and members rejoin.

`group.py` is the state, without any rule of time. `join.py`, `sync.py`, `heartbeat.py` and `leave.py` answer requests,
`rebalance.py` moves a group from one state to the next, `timing.py` says what happens when time is up, `replay.py`
takes in records. Each works on a `GroupTable` and adds to a `Decision`.

Read `group.py` first, then `rebalance.py`.
"""
