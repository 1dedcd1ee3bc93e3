"""One runtime for every coordinator, on the partitions of its topic: shards are loaded, asked, told the time and the
epoch, and what they answer and let out is kept until it is committed.

`runtime.py`, `home.py`, `loading.py`, `promise.py`, `records.py` and `chores.py` know no kind of coordinator, no API
and no topic. A `Kind` (`kind.py`) says what they must know; `groups.py` is the first, `transactions.py` the second.
What a shard has to be is written in `coordinators/shard.py`.

Transactions have effects: `markers.py` writes their markers wherever partitions are led, by way of a queue for each
broker (`marker_queues.py`). `verifying.py` asks coordinators of transactions, wherever they are, for leaders on this
node.

Read `home.py` first, then `runtime.py` and `promise.py`.
"""
