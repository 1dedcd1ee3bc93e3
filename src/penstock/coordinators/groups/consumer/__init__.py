"""Groups of the consumer protocol: the coordinator assigns, members follow at their own pace.

Three epochs rise one after the other: the group's (something that matters changed), the target assignment's (it was
computed anew) and each member's (it has given up what it must and follows the target). A partition goes to its next
owner only when the former one has said that it let go, or is gone.

`heartbeat.py` answers members of the protocol, `classic_members.py` those that still speak the classic one inside such
a group, `leave.py` removes members whatever the reason, `timing.py` is told of time, load and a changed image.
`reconcile.py` is the member's state machine, `target.py` asks the assignors. `replay.py` alone changes what is durable.

May import model, protocol, metadata and `groups.assignors`. Invariants: among members there is at most one owner of a
partition; a steady heartbeat makes no records; a group without members has no timer.

Read `member.py` first, then `group.py`, then `heartbeat.py`.
"""
