"""Blocking twins of Producer, Consumer and Admin, for threads and scripts: the same methods without `await`.

Each object has one event loop in a daemon thread (`loop_thread.py`), where its asyncio twin lives. Calls hop over to it
and back, except the one that must not: `Producer.send` fills batches from the caller's thread under the accumulator's
lock and wakes the loop only when there is something to send. Callbacks run in the loop's thread and must not block.

Invariants: Ctrl-C in a call cancels that call only; the object stays usable and closable. A process that ends without
closing does not hang: what is left is sent for a few seconds, then dropped.

Read `producer.py` first. May import what `client` may, and threading.
"""

from penstock.client.blocking.admin import Admin
from penstock.client.blocking.consumer import Consumer
from penstock.client.blocking.producer import Producer

__all__ = ["Admin", "Consumer", "Producer"]
