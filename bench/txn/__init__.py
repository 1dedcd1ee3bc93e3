"""Transactions beside Apache Kafka: how many commits a second and how fast, what readers of committed records pay,
what a gigabyte in transactions costs, and what a hundred thousand idle transactional ids do.

`speech.py` has the requests of the load, `producers.py` is the load; `commits.py`, `reading.py`, `gigabyte.py` and
`idle.py` are the parts, `page.py` writes docs/benchmarks/txn.md.
"""
