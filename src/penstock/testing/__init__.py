"""The public test kit: a real broker, or a whole cluster, inside the test process.

    from penstock.testing import broker, cluster

    with broker() as b:
        ...  # any Kafka client, pointed at b.bootstrap_servers
    with cluster(nodes=3) as c:
        c.kill(c.leader_of("orders", 0))

or the pytest fixtures `penstock_broker` and `penstock_cluster`. Nothing here is a mock: it is the node of `penstock
server start`, with its files in a temporary directory. Floor 6. Read `embedded.py` first, then `cluster.py`;
`memory_files.py` is a disk for tests that crash, `ancient.py` lets brokers begin old; `pipeline.py` puts a pipeline's
file on trial.
"""

from penstock.testing.cluster import EmbeddedCluster, EmbeddedNode, cluster
from penstock.testing.embedded import EmbeddedBroker, broker

__all__ = ["EmbeddedBroker", "EmbeddedCluster", "EmbeddedNode", "broker", "cluster"]
