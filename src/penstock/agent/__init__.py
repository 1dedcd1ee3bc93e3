"""Log collection, the Flume role: inputs → transforms → our producer → topics.

    input ──Portion──▶ Channel: transforms ──Parcels──▶ Outlet: producer or spool ──▶ topics
      ▲                                                      │
      └──────────── done(): checkpoint, 200 OK ◀─────────────┘

Invariants: an input takes no more while there is no room (`Channel.put` waits), and where its protocol cannot be made
to wait it counts what it drops; a position is checkpointed only when everything before it is acknowledged by the
brokers or safe in the spool; what transforms cannot understand goes on as it is, or to dead letters, or is counted.
With `exactly_once` records and positions go in transactions: `exactly/`.

Brokers are reached only through `penstock.client`; nothing of `server` or `spark` is imported. Begin with `portion.py`,
then `channel.py`, then an input.
"""
