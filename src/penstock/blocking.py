"""Producer, Consumer and Admin without `await`, for threads and scripts; settings and methods as in `penstock`.

    from penstock.blocking import Consumer, Producer

    with Producer(bootstrap_servers="localhost:9092") as producer:
        report = producer.send("orders", b"value", key=b"k").result()

What they stand on is in `penstock.client.blocking`.
"""

from penstock.client.blocking import Admin, Consumer, Producer

__all__ = ["Admin", "Consumer", "Producer"]
