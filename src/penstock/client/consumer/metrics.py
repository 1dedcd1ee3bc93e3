"""What a consumer counts. Plain integers on one object; `metrics()` gives them under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ConsumerMetrics:
    polls: int = 0
    records: int = 0
    bytes_fetched: int = 0
    fetches: int = 0
    fetch_errors: int = 0
    rebalances: int = 0
    commits: int = 0
    commit_failures: int = 0

    def named(self) -> dict[str, float]:
        return {
            "poll-total": self.polls,
            "records-consumed-total": self.records,
            "bytes-consumed-total": self.bytes_fetched,
            "fetch-total": self.fetches,
            "fetch-error-total": self.fetch_errors,
            "rebalance-total": self.rebalances,
            "commit-total": self.commits,
            "commit-failure-total": self.commit_failures,
        }
