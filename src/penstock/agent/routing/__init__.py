"""Where events go: their topic, key, time, headers and the form of their value.

    Batch (what the transforms left) ──Router──▶ Sorted: Parcels by topic, dead letters, counts

Invariants: events of one topic stay in the order they came in; no name that a topic may not have and no topic of the
cluster's own is ever made of a field; a field with ids cannot flood the cluster, because a router makes at most
`TOPICS_MAX` topics; what cannot be placed goes to dead letters, or on as it is and marked, and is always counted.

Pure but for the time that comes in with each batch. Imports `agent.portion` and `declared`; never `transforms`, which
stand above. Begin with `batch.py`, then `router.py`.
"""
