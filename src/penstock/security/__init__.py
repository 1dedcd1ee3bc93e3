"""Who somebody is, what they may do, and how much of it: the rules of security as pure functions.

Duty: say. A login, an access decision or a charge is asked for with everything that it depends on, and the answer is a
value; whoever asked mutes, refuses, closes and writes. Nothing here has a clock, socket, file, thread or randomness of
its own: time, nonces and salts come in as arguments, ACLs, limits and credentials from a `ClusterImage` and its deltas.

May import: `metadata`, `protocol`, `model`; above it stand `controller`, `coordinators` and `replication`, which may
import it, and everything that acts. `hashlib` and `hmac` are calculations like others.

Invariants: what is kept for hot paths is a function of the image, so rebuilding gives what following its deltas gave;
whatever a stranger can make grow is bounded; secrets are compared in constant time and have no `repr`; what is not
known (a mechanism, an ACL table that is not loaded yet) is refused, never allowed.

Read `acls.py` (an entry, a filter, what a valid one is), then `authorizer.py` (who may do what, and by which rule),
then `quotas/` (limits, rates, throttle times).
"""
