"""How the tests with nodes, clients and JVMs are shared out between the processes of the suite.

The tests of one file stay together, because they share a broker; what needs a Spark session stays together, because
that is started once and its JVM, threads and heap stay until the end; what makes network namespaces stays together,
because their names are the machine's. Where every test of a file has processes of its own, nothing holds them together.

What takes longest comes first, so that no process is left alone with it at the end.

xdist has groups too, but it tells its scheduler of them in the names of tests, and since pytest 9.2 it cannot change
these any more: every test went its own way, with a Spark session and a broker of each kind in both processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from xdist.scheduler import LoadScopeScheduling

CHAINS = {
    "tests/spark/": "spark",
    "tests/faults/spark/": "spark",
    "tests/faults/exactly/": "spark",
    "tests/faults/cluster/": "hosts",
}
"""Folders whose tests go one after the other, and the name of the chain."""

ALONE = ("tests/docs/test_pages.py", "tests/demo/test_story.py", "tests/upgrades/test_rolling.py")
"""Files whose tests share nothing."""

LONGEST = (
    "spark",
    "hosts",
    "tests/clients/test_logins.py",
    "tests/cli/test_examples.py",
    "tests/docs/test_pages.py",
    "tests/upgrades/test_rolling.py",
    "tests/demo/test_story.py",
    "tests/faults/transactions/test_faults.py",
    "tests/cli/test_pipeline.py",
    "tests/faults/test_groups.py",
    "tests/life/test_life.py",
    "tests/clients/test_transactions.py",
    "tests/cli/test_dev_secure.py",
    "tests/clients/test_records.py",
    "tests/faults/test_hanging_disk.py",
    "tests/faults/test_power_loss.py",
    "tests/packaging/test_install.py",
    "tests/faults/test_log_directories.py",
    "tests/cli/test_cluster_partitions.py",
    "tests/cli/test_dev_cluster.py",
    "tests/faults/test_disk.py",
    "tests/faults/test_kills.py",
    "tests/faults/test_endings.py",
    "tests/faults/security/test_faults.py",
    "tests/sim/quorum/test_quorum_world.py",
    "tests/sim/cluster/test_seeds.py",
    "tests/sim/cluster/test_transactions.py",
    "tests/walks/test_mechanisms_between_nodes.py",
    "tests/sim/cluster/test_hanging_disks.py",
    "tests/walks/test_retention_of_replicas.py",
    "tests/walks/test_transaction_failovers.py",
    "tests/walks/test_three_nodes.py",
    "tests/unit/testing/test_secured.py",
)
"""Chains and files that take longest, in the order in which they are handed out; a run prints what they took."""

TOLD_S = 15.0


def together(test: str) -> str:
    """The name of what a test must not be torn from, from the test's own name."""
    path = test.partition("::")[0]
    for folder, chain in CHAINS.items():
        if path.startswith(folder):
            return chain
    return test if path in ALONE else path


def turn(test: str) -> int:
    """When a test is handed out, compared to others."""
    path = test.partition("::")[0]
    ranks = [LONGEST.index(name) for name in (together(test), path) if name in LONGEST]
    return min(ranks, default=len(LONGEST))


class Spread(LoadScopeScheduling):
    """Hands out what belongs together as one piece, in the order in which it was collected."""

    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid)


def lengths(reports: Sequence[pytest.TestReport]) -> Iterator[str]:
    """What took longest, to put LONGEST in order by, and how long each process had to do."""
    took, ended = Counter[str](), dict[str, float]()
    began = min((report.start for report in reports), default=0.0)
    for report in reports:
        path = report.nodeid.partition("::")[0]
        took[path if path in ALONE else together(report.nodeid)] += report.duration
        worker = getattr(report, "worker_id", "main")
        ended[worker] = max(ended.get(worker, 0.0), report.stop - began)
    yield ", ".join(f"{worker} ended after {seconds:.0f} s" for worker, seconds in sorted(ended.items()))
    for name, seconds in took.most_common():
        if seconds >= TOLD_S:
            yield f"{seconds:5.0f} s  {name}"
