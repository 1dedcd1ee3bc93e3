"""The public test kit: a real broker inside the test process.

    from penstock.testing import broker

    with broker() as b:
        ...  # any Kafka client, pointed at b.bootstrap_servers

or the pytest fixture `penstock_broker`. Nothing here is a mock: it is the broker of `penstock server start`, with its
files in a temporary directory. Floor 6. Read `embedded.py` first; `memory_files.py` is a disk for tests that crash.
"""

from penstock.testing.embedded import EmbeddedBroker, broker

__all__ = ["EmbeddedBroker", "broker"]
